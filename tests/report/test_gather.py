"""What is kept of a stream of conversations: everything counted, a bounded part shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Turn
from causerie.report import gather
from causerie.report.gather import ColumnInfo, Gathered, Rows

UP = ColumnInfo("up", "Higher is better.")
DOWN = ColumnInfo("down", "Lower is better.", higher_is_better=False)


def talk(name: str, *answers: str, system: str | None = None) -> Dialogue:
    turns = [Turn("ann", "hello")]
    for answer in answers:
        turns += [Turn("bot", answer), Turn("ann", "go on")]
    return Dialogue(name, tuple(turns), system=system)


def data(gathered: Gathered) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gathered.data())
    return loaded


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-20, 20)), max_size=60
    )
)
def test_the_worst_are_those_a_full_sort_finds(items: list[tuple[str | None, int | None]]) -> None:
    stream = [
        (talk(str(i), "x", system=system), {1: {"up": value, "down": value}})
        for i, (system, value) in enumerate(items)
    ]
    kept = data(Gathered.of(stream, [UP, DOWN]))["worst"]
    scored = [(value, i) for i, (_, value) in enumerate(items) if value is not None]
    lowest = [str(i) for _, i in sorted(scored)]
    highest = [str(i) for _, i in sorted(scored, key=lambda pair: (-pair[0], pair[1]))]
    assert [entry["id"] for entry in kept[0]][: gather.WORST] == lowest[: gather.WORST]
    assert [entry["id"] for entry in kept[1]][: gather.WORST] == highest[: gather.WORST]
    for system in {entry["system"] for entry in kept[0]}:
        assert sum(entry["system"] == system for entry in kept[0]) <= gather.WORST


def test_statistics_cover_all_conversations_but_only_the_first_are_shown() -> None:
    def stream() -> Iterator[tuple[Dialogue, Rows]]:
        for number in range(gather.MAX_DIALOGUES + 7):
            yield talk(str(number), "x", system="a"), {1: {"up": -number}}

    gathered = Gathered.of(stream(), [UP])
    assert gathered.groups[0].distributions[0].count == gather.MAX_DIALOGUES + 7
    assert len(data(gathered)["dialogues"]) == gather.MAX_DIALOGUES
    worst = data(gathered)["worst"][0][0]
    assert (worst["id"], worst["place"]) == (str(gather.MAX_DIALOGUES + 6), None)


def test_the_page_has_a_size_limit_and_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "MAX_CHARACTERS", 6_000)
    stream = [(talk(str(n), "y" * 5_000_000), {1: {"up": n}}) for n in range(3)]
    gathered = Gathered.of(stream, [UP])
    shown = data(gathered)["dialogues"]
    assert [entry["id"] for entry in shown] == ["0"]
    assert shown[0]["turns"][1]["text"].endswith("[cut: 5,000,000 characters in all]")
    assert len(gathered.data()) < 12_000
    assert gathered.responses == 3


def test_many_systems_share_the_last_group() -> None:
    systems = [f"s{number}" for number in range(gather.MAX_SYSTEMS + 3)]
    stream = [(talk("t", "x", system=system), {1: {"up": 1}}) for system in [*systems, "s0"]]
    groups = Gathered.of(stream, [UP]).groups
    assert [g.label for g in groups] == [*systems[: gather.MAX_SYSTEMS], "all other systems"]
    assert [g.distributions[0].count for g in groups] == [2] + [1] * (gather.MAX_SYSTEMS - 1) + [3]


def test_without_systems_there_is_one_group() -> None:
    stream = [(talk("t", "x"), {1: {"up": 1}})]
    assert [group.label for group in Gathered.of(stream, [UP]).groups] == ["all conversations"]


def test_what_is_not_a_finite_number_is_unscored() -> None:
    row = {1: {"up": float("nan")}, 3: {"up": "7"}, 5: {"up": True}, 7: {"up": 10**400}, 9: {}}
    gathered = Gathered.of([(talk("t", *"abcde"), row)], [UP])
    assert gathered.groups[0].distributions[0].unscored == 5
    assert data(gathered)["worst"] == [[]]


def test_a_response_is_shown_with_percentile_references_and_explanation() -> None:
    turns = (Turn("ann", "hi"), Turn("bot", "hello", references=("good day",)))
    row = {"up": 0.5, "up.percentile": 40.0, "explanation": {"why": [float("inf"), (1, None)]}}
    shown = data(Gathered.of([(Dialogue("d", turns), {1: row})], [UP]))["dialogues"][0]["turns"]
    assert "scores" not in shown[0]
    assert shown[1]["scores"] == [0.5]
    assert shown[1]["percentiles"] == [40.0]
    assert shown[1]["references"] == ["good day"]
    assert shown[1]["explanation"] == {"why": ["inf", [1, None]]}


def test_sides_are_the_roles_that_scoring_sees() -> None:
    """Where roles are unknown, whoever speaks last is the system, here and in the metrics."""
    unknown = Dialogue.from_texts(["hi", "hello", "bye"], speakers=("ann", "bob"))
    roles = Dialogue("e", (Turn("ann", "hi", "system"), Turn("bob", "hello", "user")))
    named = talk("d", "x")
    shown = data(Gathered.of([(d, {}) for d in (unknown, roles, named)], [UP]))["dialogues"]
    sides = [[turn["side"] for turn in dialogue["turns"]] for dialogue in shown]
    assert sides == [["system", "user", "system"], ["system", "user"], ["user", "system", "user"]]
    last = unknown.exchanges()[-1]
    assert sides[0] == [last.role_of(turn) for turn in unknown.turns]


@given(st.text(), st.text())
def test_any_text_survives_and_cannot_end_its_script_element(text: str, name: str) -> None:
    dialogue = Dialogue(name, (Turn("a", "x"), Turn(name, text)), system=name)
    written = Gathered.of([(dialogue, {1: {"up": 1, "explanation": {name: text}}})], [UP]).data()
    assert written.isascii()
    assert not set(written) & set("<>&")
    turn = json.loads(written)["dialogues"][0]["turns"][1]
    assert (turn["text"], turn["speaker"], turn["explanation"]) == (text, name, {name: text})
