"""Pages of many conversations: all of them are counted, a bounded number is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Turn
from causerie.metrics.base import EMPTY, Column, Score
from causerie.render.page import shown
from causerie.report import page as pages
from causerie.report.figures import WORST
from causerie.report.page import Page
from causerie.scoring import summary as summaries
from report.making import Rows, page_of

UP = {"up": Column(help="Higher is better.")}
BOTH = {**UP, "down": Column(help="Lower is better.", better="lower")}


def talk(name: str, *answers: str, system: str | None = None) -> Dialogue:
    turns = [Turn("ann", "hello")]
    for answer in answers:
        turns += [Turn("bot", answer), Turn("ann", "go on")]
    return Dialogue(name, tuple(turns), system=system)


def data(page: Page) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(pages._data(page))
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
    kept = data(page_of(stream, BOTH))["worst"]
    scored = [(value, i) for i, (_, value) in enumerate(items) if value is not None]
    lowest = [str(i) for _, i in sorted(scored)]
    highest = [str(i) for _, i in sorted(scored, key=lambda pair: (-pair[0], pair[1]))]
    assert [entry["id"] for entry in kept[0]][:WORST] == lowest[:WORST]
    assert [entry["id"] for entry in kept[1]][:WORST] == highest[:WORST]
    for system in {entry["system"] for entry in kept[0]}:
        assert sum(entry["system"] == system for entry in kept[0]) <= WORST


def test_statistics_cover_all_conversations_but_only_the_first_are_shown() -> None:
    def stream() -> Iterator[tuple[Dialogue, Rows]]:
        for number in range(pages.MAX_DIALOGUES + 7):
            yield talk(str(number), "x", system="a"), {1: {"up": -number}}

    page = page_of(stream(), UP)
    assert page.groups[0].figures["up"].scored == pages.MAX_DIALOGUES + 7
    assert len(data(page)["dialogues"]) == pages.MAX_DIALOGUES
    worst = data(page)["worst"][0][0]
    assert (worst["id"], worst["place"]) == (str(pages.MAX_DIALOGUES + 6), None)


def test_the_page_has_a_size_limit_and_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_CHARACTERS", 6_000)
    stream = [(talk(str(n), "y" * 5_000_000), {1: {"up": n}}) for n in range(3)]
    page = page_of(stream, UP)
    shown = data(page)["dialogues"]
    assert [entry["id"] for entry in shown] == ["0"]
    assert shown[0]["turns"][1]["text"].endswith("[cut: 5,000,000 characters in all]")
    assert len(pages._data(page)) < 12_000
    assert page.responses == 3


def test_many_systems_share_the_last_group() -> None:
    systems = [f"s{number:02}" for number in range(summaries.MAX_SYSTEMS + 3)]
    for order in (systems, systems[::-1]):
        stream = [(talk(s, "x", system=s), {1: {"up": 1}}) for s in [*order, "s00", "s14"]]
        page = page_of(stream, UP)
        labels = [group.label for group in page.groups]
        assert labels == [*systems[: summaries.MAX_SYSTEMS], "all other systems"]
        counts = [group.figures["up"].scored for group in page.groups]
        assert counts == [2] + [1] * (summaries.MAX_SYSTEMS - 1) + [4]
        groups = {t["id"]: labels[t["system"]] for t in data(page)["dialogues"]}
        assert groups["s03"] == "s03"
        assert groups["s13"] == "all other systems"


def test_without_systems_there_is_one_group() -> None:
    page = page_of([(talk("t", "x"), {1: {"up": 1}})], UP)
    assert [group.label for group in page.groups] == ["all conversations"]


def test_what_is_not_a_finite_number_is_unscored() -> None:
    row = {1: {"up": float("nan")}, 3: {"up": float("inf")}, 5: {"up": None}, 7: {}}
    page = page_of([(talk("t", *"abcd"), row)], UP)
    assert page.groups[0].figures["up"].unscored.total() == 4
    assert data(page)["worst"] == [[]]


def test_an_empty_response_leads_the_worst_and_lowers_the_mean() -> None:
    columns = {
        "bounded": Column(range=(-1.0, 1.0)),
        "open": Column(better="lower"),
        "neither": Column(better=None),
    }
    values = {1: 0.5, 3: EMPTY, 5: 0.2, 7: Score.unscored("no reason")}
    row = {turn: dict.fromkeys(columns, value) for turn, value in values.items()}
    page = page_of([(talk("t", "a", "", "b", "c"), row)], columns)
    bounded, open_, neither = (page.figures[name] for name in columns)
    assert bounded.mean == pytest.approx((0.5 + 0.2 - 1.0) / 3)
    assert open_.mean == pytest.approx((0.5 + 0.2 + 0.5) / 3), "the worst that was seen"
    assert neither.mean == pytest.approx((0.5 + 0.2) / 2), "neither end is worse"
    found = data(page)
    assert [[e["turn"] for e in column] for column in found["worst"]] == [
        [3, 5, 1],
        [3, 1, 5],
        [5, 1],
    ]
    assert found["worst"][0][0]["value"] is None
    assert found["dialogues"][0]["turns"][7]["reasons"] == ["no reason"] * 3


def test_a_response_is_shown_with_percentile_references_and_explanation() -> None:
    turns = (Turn("ann", "hi"), Turn("bot", "hello", references=("good day",)))
    score = Score(0.5, 40.0, {"why": [float("inf"), (1, None)]})
    page = page_of([(Dialogue("d", turns), {1: {"up": score}})], UP)
    shown = data(page)["dialogues"][0]["turns"]
    assert "scores" not in shown[0]
    assert shown[1]["scores"] == [0.5]
    assert shown[1]["percentiles"] == [40.0]
    assert shown[1]["references"] == ["good day"]
    assert shown[1]["explanation"] == {"up": {"why": ["inf", [1, None]]}}


def test_sides_are_the_roles_that_scoring_sees() -> None:
    """Where roles are unknown, whoever speaks last is the system, here and in the metrics."""
    unknown = Dialogue.from_texts(["hi", "hello", "bye"], speakers=("ann", "bob"))
    roles = Dialogue("e", (Turn("ann", "hi", "system"), Turn("bob", "hello", "user")))
    named = talk("d", "x")
    rows: Rows = {1: {"up": 1.0}}
    shown = data(page_of([(d, rows) for d in (unknown, roles, named)], UP))["dialogues"]
    sides = [[turn["side"] for turn in dialogue["turns"]] for dialogue in shown]
    assert sides == [["system", "user", "system"], ["system", "user"], ["user", "system", "user"]]
    last = unknown.exchanges()[-1]
    assert sides[0] == [last.role_of(turn) for turn in unknown.turns]


@given(st.text(), st.text())
def test_any_text_survives_and_cannot_end_its_script_element(text: str, name: str) -> None:
    dialogue = Dialogue(name, (Turn("a", "x"), Turn(name, text)), system=name)
    score = Score(1.0, explanation={name: text})
    written = pages._data(page_of([(dialogue, {1: {"up": score}})], UP))
    assert written.isascii()
    assert not set(written) & set("<>&")
    turn = json.loads(written)["dialogues"][0]["turns"][1]
    assert (turn["text"], turn["speaker"]) == (shown(text), shown(name))
    assert turn["explanation"] == {"up": {shown(name): shown(text)}}
