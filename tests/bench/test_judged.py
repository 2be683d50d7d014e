"""Judged sets: what is read, what is left out, and that nothing in a file stops the reading."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.bench.sets.judged import read_attack, read_judged, set_name
from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError


def turn(speaker: str, text: str) -> dict[str, str]:
    return {"speaker": speaker, "text": text}


def record(**changes: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "level": "turn",
        "context": [turn("A", "do you like tea ?"), turn("B", "i do .")],
        "response": turn("A", "green tea ?"),
        "reference": "which one ?",
        "system": "bot",
        "ratings": {"overall": [3, 4]},
        **changes,
    }


def pair(first: str, second: str, said: tuple[str, str], **changes: Any) -> dict[str, Any]:
    return {
        "id": f"{first}-vs-{second}",
        "level": "pair",
        "context": [turn("M", "hello ."), turn("W", "hi , cold today .")],
        "a": {"system": first, "text": said[0]},
        "b": {"system": second, "text": said[1]},
        "judgements": [{"overall": "A"}, {"overall": "both bad"}],
        **changes,
    }


def write(folder: Path, name: str, *records: dict[str, Any] | str | bytes) -> Path:
    path = folder / name
    lines = [r if isinstance(r, (str, bytes)) else json.dumps(r) for r in records]
    path.write_bytes(b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in lines))
    return path


def test_a_turn_becomes_an_exchange(tmp_path: Path) -> None:
    judged = read_judged(write(tmp_path, "mine.jsonl", record(fact="i drink tea\nno coffee\n")))
    (item,) = judged.items
    assert isinstance(item.item, Exchange)
    assert [t.text for t in item.item.context] == ["do you like tea ?", "i do ."]
    assert item.item.response.text == "green tea ?"
    assert item.item.references == ("which one ?",)
    assert item.item.background == ("i drink tea", "no coffee")
    assert item.item.dialogue.system == "bot"
    assert item.mean("overall") == 3.5
    assert item.mean("fluency") is None
    assert (judged.name, judged.level, judged.dimensions) == ("mine", "turn", ("overall",))
    assert judged.problems == ()
    assert len(judged) == 1


def test_several_references_win_over_the_first(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.jsonl", record(references=["which one ?", "tea ?", "tea ?", ""]))
    (item,) = read_judged(path).items
    assert isinstance(item.item, Exchange)
    assert item.item.references == ("which one ?", "tea ?")


def test_a_dialogue_keeps_its_roles(tmp_path: Path) -> None:
    talk = record(level="dialog", context=[turn("user", "hi"), turn("System", "hello")])
    judged = read_judged(write(tmp_path, "mine.jsonl", talk))
    (item,) = judged.items
    assert judged.level == "dialogue"
    assert isinstance(item.item, Dialogue)
    assert [t.role for t in item.item.turns] == ["user", "system"]


def test_messages_of_a_context_are_read_as_everywhere(tmp_path: Path) -> None:
    context = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "tool", "content": "{}"},
    ]
    pair = {
        "fact": "I sing.",
        "a": {"system": "x", "text": "Sunny."},
        "b": {"system": "y", "text": "Fog."},
        "judgements": [{"overall": "A"}],
    }
    item = (
        read_judged(write(tmp_path, "m.jsonl", record(context=context, fact="I sing.")))
        .items[0]
        .item
    )
    judged = read_judged(write(tmp_path, "p.jsonl", record(context=context, level="pair", **pair)))
    assert isinstance(item, Exchange)
    for exchange in (item, judged.pairs[0].a, judged.pairs[0].b):
        assert [(t.text, t.role) for t in exchange.context] == [("Weather?", "user")]
        assert exchange.response.role == "system"
        assert exchange.background == ("I sing.", "Be brief.")
    assert judged.problems == ("line 1: 1 messages of tools: left out",)


def test_hash_and_records_do_not_depend_on_compression(tmp_path: Path) -> None:
    plain = write(tmp_path, "mine.jsonl", record(), record(id="r2"))
    packed = tmp_path / "mine.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_judged(plain) == read_judged(packed)
    assert read_judged(plain).sha256 == hashlib.sha256(plain.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("ratings", "usable", "problem"),
    [
        ({"overall": [3, None, 5]}, (3.0, None, 5.0), None),
        ({"overall": [3, "N/A", 5]}, (3.0, None, 5.0), "1 rating(s) that are no numbers"),
        ({"overall": [3, True, 5]}, (3.0, None, 5.0), "1 rating(s) that are no numbers"),
        ({"overall": [3, float("nan")]}, (3.0, None), "1 rating(s) that are no numbers"),
        ({"overall": [3, 1e200, -(10**400)]}, (3.0, None, None), "2 rating(s) that are no numbers"),
        ({"overall": ["3", " 4.5 "]}, (3.0, 4.5), None),
        ({"overall": 4}, (4.0,), None),
        ({"overall": []}, None, "'overall' has no rating"),
        ({}, None, "has no ratings"),
        ([3, 4], None, "has no ratings"),
    ],
)
def test_bad_ratings_cost_only_themselves(
    tmp_path: Path, ratings: Any, usable: tuple[float | None, ...] | None, problem: str | None
) -> None:
    judged = read_judged(write(tmp_path, "m.jsonl", record(), record(id="r2", ratings=ratings)))
    assert len(judged) == 2
    assert judged.items[1].ratings.get("overall") == usable
    if problem is None:
        assert judged.problems == ()
    else:
        assert judged.problems[0].startswith("line 2: ")
        assert problem in judged.problems[0]


def test_a_dimension_that_some_items_lack_is_a_problem(tmp_path: Path) -> None:
    other = record(id="r2", ratings={"overall": [1], "fluent": [2]})
    judged = read_judged(write(tmp_path, "m.jsonl", record(), other))
    assert judged.dimensions == ("overall", "fluent")
    assert judged.problems == ("1 of 2 items have no rating of 'fluent'",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        ("[1]", "a record must be a JSON object"),
        (b"\xff\xfe{}", "not valid UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        (record(context="hi"), "context must be a list"),
        (record(context=[3]), "context turn 0: must be an object"),
        (record(context=[{"speaker": "A"}]), "context turn 0: text is missing"),
        (record(response=None), "response: must be an object"),
        (record(response=turn("A", "a\0b")), "NUL"),
        (record(level="essay"), "level is 'essay'"),
        (record(level=["turn"]), "level is ['turn']"),
        (record(level="dialog"), "level is 'dialog', not 'turn'"),
    ],
)
def test_a_bad_record_is_left_out_with_its_line(
    tmp_path: Path, line: dict[str, Any] | str | bytes, reason: str
) -> None:
    judged = read_judged(write(tmp_path, "m.jsonl", record(), line, record(id="r3")))
    assert [item.id for item in judged.items] == ["r1", "r3"]
    (problem,) = judged.problems
    assert problem.startswith("line 2: ")
    assert reason in problem


def test_empty_turns_leave_the_context_and_an_empty_response_stays(tmp_path: Path) -> None:
    blank = record(context=[turn("A", "hi"), turn("B", "  ")], response=turn("B", ""))
    judged = read_judged(write(tmp_path, "m.jsonl", blank))
    (item,) = judged.items
    assert isinstance(item.item, Exchange)
    assert [t.text for t in item.item.dialogue.turns] == ["hi", ""]
    assert len(judged.problems) == 2


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{}\n", b"nonsense\n"])
def test_a_file_without_a_record_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(content)
    with pytest.raises(CauserieError, match="no judged record"):
        read_judged(path)


def test_a_damaged_archive_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl.gz"
    whole = gzip.compress(
        b"".join(json.dumps(record(id=f"r{i}")).encode() + b"\n" for i in range(99))
    )
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CauserieError, match="cannot be read"):
        read_judged(path)


def test_humans_by_default_names_and_by_the_catalogue(tmp_path: Path) -> None:
    systems = ["Human", "GROUND_TRUTH", "original ground truth", "New Human Generated", "bot", None]
    records = [record(id=f"r{i}", system=system) for i, system in enumerate(systems)]
    mine = read_judged(write(tmp_path, "mine.jsonl", *records))
    assert [item.human for item in mine.items] == [True] * 4 + [False] * 2
    # The catalogue says that nobody in this set is human, whatever the name.
    known = read_judged(write(tmp_path, "grade_convai2.jsonl", *records))
    assert not any(item.human for item in known.items)


def test_clusters_by_context_by_dialogue_and_by_id(tmp_path: Path) -> None:
    other = [turn("A", "something else")]
    by_context = read_judged(
        write(tmp_path, "m.jsonl", record(), record(id="r2", context=other), record(id="r3"))
    )
    assert [item.cluster for item in by_context.items] == ["r1", "r2", "r1"]
    by_dialogue = read_judged(
        write(
            tmp_path,
            "m.jsonl",
            record(dialog_id="d"),
            record(id="r2", context=other, dialog_id="d"),
        )
    )
    assert [item.cluster for item in by_dialogue.items] == ["d", "d"]
    by_id = read_judged(
        write(
            tmp_path,
            "dbdc3_en.jsonl",
            record(id="dbdc3-CIC-1-02"),
            record(id="dbdc3-CIC-1-04", context=other),
            record(id="dbdc3-CIC-2-02"),
        )
    )
    assert [item.cluster for item in by_id.items] == ["dbdc3-CIC-1", "dbdc3-CIC-1", "dbdc3-CIC-2"]


def test_pairs_take_the_human_response_of_their_context_as_reference(tmp_path: Path) -> None:
    judged = read_judged(
        write(
            tmp_path,
            "pairwise_dream.jsonl",
            pair("x", "y", ("so cold !", "bye .")),
            pair("x", "human", ("so cold !", "take my coat .")),
            pair("x", "y", ("p", "q"), id="other", context=[turn("M", "another talk")]),
        )
    )
    assert (judged.level, len(judged), judged.items) == ("pair", 3, ())
    first, second, third = judged.pairs
    assert first.a.references == first.b.references == ("take my coat .",)
    assert second.humans == (False, True)
    assert third.a.references == ()
    assert first.cluster == second.cluster != third.cluster
    assert first.judgements == ({"overall": "A"}, {"overall": "both bad"})
    # Who answers W is M: the pair does not say, the context does.
    assert first.a.response.speaker == "M"


def test_a_pairs_own_reference_comes_first(tmp_path: Path) -> None:
    own = pair("x", "human", ("so cold !", "take my coat ."), reference="mine")
    (only,) = read_judged(write(tmp_path, "pairwise_dream.jsonl", own)).pairs
    assert only.a.references == ("mine",)


def test_unknown_votes_are_dropped_and_told(tmp_path: Path) -> None:
    odd = pair("x", "y", ("p", "q"), judgements=[{"overall": "C", "empathy": "b"}, 7, {"x": None}])
    judged = read_judged(write(tmp_path, "m.jsonl", odd))
    assert judged.pairs[0].judgements == ({"empathy": "B"}, {}, {})
    assert len(judged.problems) == 2


def test_attacks(tmp_path: Path) -> None:
    context = [turn("A", "tea ?"), turn("B", "yes .")]
    path = write(
        tmp_path,
        "ner_neutral.jsonl",
        {"id": "1", "context": context, "answer": "here .", "adversarial": "there ."},
        {"id": "2", "context": context, "answer": "same", "adversarial": "same"},
        {
            "id": "3",
            "context": context,
            "answer": "same",
            "adversarial": "same",
            "adversarial_context": [turn("A", "coffee ?")],
        },
        {"id": "4", "context": context, "answer": "here ."},
        {"id": "5", "context": [], "answer": "hello", "adversarial": "hullo"},
    )
    attack = read_attack(path)
    assert attack.control
    assert [item.id for item in attack.items] == ["1", "3", "5"]
    assert attack.items[0].true.response.speaker == "A"
    assert attack.items[0].corrupted.response.text == "there ."
    assert [t.text for t in attack.items[1].corrupted.context] == ["coffee ?"]
    assert attack.items[2].true.context == ()
    assert [problem.split(":")[0] for problem in attack.problems] == ["line 2", "line 4"]
    assert not read_attack(
        write(tmp_path, "pronoun.jsonl", json.loads(path.read_text().split("\n")[0]))
    ).control


@pytest.mark.parametrize("name", ["fed_turn.jsonl", "fed_turn.jsonl.gz", "x/fed_turn.jsonl"])
def test_set_name(name: str) -> None:
    assert set_name(name) == "fed_turn"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.sampled_from(["id", "level", "context", "response", "reference", "references", "fact"])
more = st.sampled_from(["system", "ratings", "a", "b", "judgements", "dialog_id", "answer"])


@settings(max_examples=150)
@given(st.dictionaries(fields | more, json_values, max_size=8), st.sampled_from(["turn", "pair"]))
def test_no_record_stops_the_reading(tmp_path: Path, changes: dict[str, Any], level: str) -> None:
    good = record() if level == "turn" else pair("x", "y", ("p", "q"))
    judged = read_judged(write(tmp_path, "m.jsonl", good, {**good, **changes}, good))
    assert len(judged) >= 2
    if len(judged) == 2:
        assert any(problem.startswith("line 2") for problem in judged.problems)
