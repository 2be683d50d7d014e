"""Turn pairs, ratings on one scale, and dialogues that are refused."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie import CauserieError, Dialogue, Turn
from causerie.ratings.log import ReadOptions, Skipped, five_class, is_low, read_log, to_scale
from causerie.ratings.pairs import paired, turn_pairs


def talk(text: str, **fields: Any) -> Dialogue:
    """Return `"u:hi s:hello"` as a dialogue."""
    names = {"u": "user", "s": "bot"}
    turns = [Turn(names[part[0]], part[2:]) for part in text.split()]
    return Dialogue("d", tuple(turns), **fields)


def shape(dialogue: Dialogue) -> list[tuple[str | None, str | None, str | None]]:
    return [(p.user, p.before, p.answer or None) for p in turn_pairs(dialogue)]


@pytest.mark.parametrize(
    ("said", "pairs"),
    [
        ("u:a s:b u:c s:d", [("a", None, "b"), ("c", "b", "d")]),
        ("s:a u:b s:c", [(None, None, "a"), ("b", "a", "c")]),
        ("u:a u:b s:c s:d u:e", [("a b", None, "c d"), ("e", "c d", None)]),
        ("u:a", [("a", None, None)]),
        ("s:a s:b", [(None, None, "a b")]),
    ],
)
def test_turns_in_pairs(said: str, pairs: list[Any]) -> None:
    assert shape(talk(said)) == pairs


@given(st.lists(st.sampled_from("us"), min_size=1, max_size=30))
def test_every_run_of_turns_is_in_one_pair(sides: list[str]) -> None:
    dialogue = talk(" ".join(f"{side}:{n}" for n, side in enumerate(sides)))
    pairs = turn_pairs(dialogue)
    said = [word for pair in pairs for word in (pair.user or "").split()]
    assert said == [str(n) for n, side in enumerate(sides) if side == "u"]
    answered = [word for pair in pairs for word in pair.answer.split()]
    assert answered == [str(n) for n, side in enumerate(sides) if side == "s"]
    runs = sum(1 for n, side in enumerate(sides) if side == "s" and sides[n + 1 : n + 2] != ["s"])
    assert sum(pair.response is not None for pair in pairs) == runs
    assert all(pair.user or pair.response for pair in pairs)


@given(st.lists(st.tuples(st.sampled_from("us"), st.sampled_from(["", "a", "b c"])), min_size=1))
def test_sides_alternate_in_a_paired_dialogue_and_no_word_is_lost(
    said: list[tuple[str, str]],
) -> None:
    names = {"u": "user", "s": "bot"}
    dialogue = Dialogue("d", tuple(Turn(names[side], text) for side, text in said))
    talk = paired(dialogue)
    roles = [turn.role for turn in talk.turns]
    assert all(a != b for a, b in pairwise(roles))
    assert None not in roles
    for side, role in (("u", "user"), ("s", "system")):
        words = [word for turn in talk.turns if turn.role == role for word in turn.text.split()]
        assert words == [word for who, text in said if who == side for word in text.split()]
    assert paired(talk) == talk  # where sides alternate, nothing is joined


def test_a_joined_turn_has_all_that_its_parts_had() -> None:
    turns = (
        Turn("bot", "a", references=("x",), features={"asr": 0.2, "pitch": 5}),
        Turn("bot", "b", references=("y", "z"), features={"asr": 0.6}),
    )
    (joined,) = paired(Dialogue("d", turns, background=("fact",))).turns
    assert (joined.text, joined.role, joined.references) == ("a b", "system", ("x", "y", "z"))
    assert joined.features == pytest.approx({"asr": 0.4, "pitch": 5})


def test_who_keeps_silent_says_nothing() -> None:
    pairs = turn_pairs(Dialogue("d", (Turn("user", ""), Turn("bot", "hi"), Turn("user", "so"))))
    assert [(p.user, p.before, p.answer) for p in pairs] == [(None, None, "hi"), ("so", "hi", "")]


def test_numbers_of_both_turns_are_columns() -> None:
    turns = (Turn("user", "a", features={"asr": 0.5}), Turn("bot", "b", features={"delay": 2.0}))
    (pair,) = turn_pairs(Dialogue("d", turns))
    sides = {"user.asr": 0.5, "system.delay": 2.0}
    assert pair.columns == {"asr": 0.5, "delay": 2.0, **sides}


def test_who_is_the_system() -> None:
    dialogue = Dialogue("d", (Turn("sp1", "a"), Turn("sp2", "b")))
    with pytest.raises(CauserieError, match=r"'sp1' may be the user or the system.*--system"):
        turn_pairs(dialogue)
    assert turn_pairs(dialogue, "sp2")[0].user == "a"
    assert turn_pairs(dialogue, "sp1")[0].user is None


def test_scales_and_classes_by_hand() -> None:
    assert to_scale(50, (0, 100)) == 3.0
    assert (to_scale(0, (0, 5)), to_scale(5, (0, 5))) == (1.0, 5.0)
    assert [five_class(r) for r in (1.0, 3.4, 3.5, 4.5, 5.0)] == [1, 3, 4, 5, 5]
    assert (is_low(2.99), is_low(3.0)) == (True, False)
    with pytest.raises(CauserieError, match="rating 7 is outside its scale, 1 to 5"):
        to_scale(7, (1, 5))
    with pytest.raises(CauserieError, match="from low to high"):
        to_scale(3, (5, 1))


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def record(said: str, **fields: Any) -> dict[str, Any]:
    turns = [{"speaker": t.speaker, "text": t.text} for t in talk(said).turns]
    return {"id": "d", "turns": turns, **fields}


def test_a_log_keeps_what_can_be_used_and_says_why_not_the_rest(tmp_path: Path) -> None:
    long = "u:a s:b " * 3
    file = write(
        tmp_path / "log.jsonl",
        record(long, rating=80, rating_scale=[0, 100], date="2026-03-01T10:00:00", bot="x"),
        record(long, rating=4, date="2017-07"),
        record(long),
        record(long, rating=9),
        record("u:a s:b", rating=3),
        record("u:a u:b u:c", rating=3),
        record("s:a s:b s:c", rating=3),
        record(long, rating=3, quality_control="fail"),
        record("u:a s:b " * 230, rating=1),
    )
    log = read_log([file], ReadOptions(without={"quality_control": frozenset({"fail"})}))
    assert [(one.rating, one.day, one.bot) for one in log.dialogues] == [
        (pytest.approx(4.2), date(2026, 3, 1), "x"),
        (4.0, None, None),
        (1.0, None, None),
    ]
    assert len(log.dialogues[2].pairs) == 230
    assert log.skipped == {
        "has no rating": 1,
        "rating 9 is outside its scale, 1 to 5": 1,
        "has fewer than 3 turn pairs": 1,
        "has no turn of the system": 1,
        "has no turn of the user": 1,
        "has quality_control=fail": 1,
    }
    unrated = read_log([file], ReadOptions(rated=False, least_pairs=1))
    assert len(unrated.dialogues) == 6


def test_a_log_of_which_nothing_can_be_used_is_one_line(tmp_path: Path) -> None:
    file = write(tmp_path / "log.jsonl", record("u:a s:b"), record("u:a s:b"))
    with pytest.raises(CauserieError, match=r"^no dialogue can be used: has no rating$"):
        read_log([file])


def test_reasons_that_differ_in_values_alone_are_one() -> None:
    skipped = Skipped()
    for reason in (
        "rating 7 is outside its scale, 1 to 5",
        "rating -2.5 is outside its scale, 1 to 5",
        "has no rating",
        "has no rating",
        "speaker 'x' may be the user",
        "left out by bot=qc",
    ):
        skipped.add(reason)
    assert skipped.reasons == {
        "rating 7 is outside its scale, 1 to 5 (and the like)": 2,
        "has no rating": 2,
        "speaker 'x' may be the user": 1,
        "left out by bot=qc": 1,
    }


@pytest.mark.parametrize("scale", [(1, float("inf")), (float("-inf"), 5), (1, float("nan"))])
def test_a_scale_without_an_end_is_refused(scale: tuple[float, float]) -> None:
    with pytest.raises(CauserieError, match="a scale must go from low to high"):
        to_scale(3, scale)


@pytest.mark.parametrize(
    ("given", "user"),
    [("w1", "w1"), (["w1"], "w1"), (7, "7"), (["w1", "w2"], None), ("", None), (None, None)],
)
def test_who_rated_is_known_where_the_log_says_so(
    given: Any, user: str | None, tmp_path: Path
) -> None:
    file = write(tmp_path / "log.jsonl", record("u:a s:b " * 3, rating=3, user=given))
    assert read_log([file]).dialogues[0].user == user
