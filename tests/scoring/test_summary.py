"""Summaries against the standard library, and the parts of a run against the whole."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.metrics.base import EMPTY, Column, Score
from causerie.report.figures import WORST
from causerie.scoring import Batch, Summary
from causerie.scoring.gates import parse_condition

COLUMNS = {
    "up": Column(range=(-2e6, None), calibrated=True),
    "down": Column(better="lower"),
    "words": Column(better=None, sentinel=True),
}


def exchange(index: int, text: str = "fine", system: str | None = None) -> Exchange:
    turns = (Turn("A", "hi"), Turn(f"B{index % 3}", text))
    return Exchange(Dialogue(f"d{index}", turns, system=system), 1)


def batch_of(items: Sequence[Exchange], scores: Sequence[Score], **more: Any) -> Batch:
    plan: Any = None
    return Batch(plan, tuple(items), {name: tuple(scores) for name in COLUMNS}, **more)


def summary_of(items: Sequence[Exchange], scores: Sequence[Score], size: int = 7) -> Summary:
    """Of batches of some size; written down and read back after each, as by a resumed run."""
    summary = Summary(COLUMNS)
    for start in range(0, len(items), size):
        part = slice(start, start + size)
        for item in items[part]:
            summary.see(item.dialogue)
        cuts = {"up": {"encoder": (1, 2)}}
        summary.add(batch_of(items[part], scores[part], cuts=cuts, without=1))
        summary = Summary.from_json(json.loads(json.dumps(summary.to_json())))
    return summary


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_a_summary_equals_statistics(numbers: list[float]) -> None:
    items = [exchange(index) for index in range(len(numbers))]
    found = summary_of(items, [Score.of(number) for number in numbers]).columns
    for name, figures in found.items():
        assert figures.mean == pytest.approx(statistics.fmean(numbers), rel=1e-9, abs=1e-6)
        assert figures.spread == pytest.approx(statistics.stdev(numbers), rel=1e-6, abs=1e-4)
        worst = sorted(numbers, reverse=name == "down")[:WORST]
        assert [quote.value for quote in figures.worst] == worst


scores = st.one_of(
    st.floats(-1e3, 1e3).map(lambda value: Score(value, (value + 1e3) / 20)),
    st.just(EMPTY),
    st.sampled_from(["no reference", "too long"]).map(Score.unscored),
)
names = st.sampled_from([None, *(f"s{n:02}" for n in range(16))])


@given(st.lists(st.tuples(scores, names), max_size=80), st.data())
def test_summaries_of_parts_merge_to_that_of_the_whole(
    given: list[tuple[Score, str | None]], data: st.DataObject
) -> None:
    items = [exchange(i, f"text {i}", system) for i, (_, system) in enumerate(given)]
    values = [score for score, _ in given]
    cut = 7 * data.draw(st.integers(0, len(items) // 7))
    whole = summary_of(items, values)
    first, second = summary_of(items[:cut], values[:cut]), summary_of(items[cut:], values[cut:])
    before = json.dumps([first.to_json(), second.to_json()])
    merged = first.merge(second)
    assert json.dumps([first.to_json(), second.to_json()]) == before, "parts stay as they are"
    assert_equal(merged.to_json(), whole.to_json())
    for name in COLUMNS:
        assert_equal(merged.columns[name].to_json(), whole.columns[name].to_json())
        assert merged.columns[name].mean == pytest.approx(whole.columns[name].mean)
        assert merged.columns[name].spread == pytest.approx(whole.columns[name].spread, abs=1e-6)
    assert [group.label for group in merged.groups] == [group.label for group in whole.groups]


def assert_equal(found: Any, expected: Any) -> None:
    """Equal up to the rounding of sums."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_equal(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-4)
    else:
        assert found == expected


def test_different_columns_do_not_merge() -> None:
    with pytest.raises(CauserieError, match="cannot be merged"):
        Summary(COLUMNS).merge(Summary({"up": Column()}))


def test_unscored_are_counted_by_reason() -> None:
    given = [Score.unscored("no reference"), Score.of(float("nan")), Score.of(2.0), EMPTY]
    summary = summary_of([exchange(i) for i in range(4)], given)
    figures = summary.columns["up"]
    assert figures.unscored == {"no reference": 1, "the value is nan": 1, "empty response": 1}
    assert figures.scored == 1
    row = dict(zip(summary.table().headings, summary.table().rows[0], strict=True))
    assert row["metric"] == "up ↑"
    assert row["unscored"] == "3 (1 empty)"


def test_conditions_are_about_the_summary() -> None:
    given = [Score(1.0, 80.0), Score(0.5, 40.0), EMPTY, Score.unscored("no reference")]
    summary = summary_of([exchange(i) for i in range(4)], given)
    summary.reject()

    def value(text: str) -> float | None:
        return summary.judge(parse_condition(text, COLUMNS, "mean")).value

    assert value("up < 0") == pytest.approx((1.5 - 2e6) / 3)
    assert value("down < 0") == pytest.approx((1.0 + 0.5 + 1.0) / 3)
    assert value("words < 0") == pytest.approx(0.75)
    assert value("percentile(up) < 0") == pytest.approx(40.0)
    assert value("unscored(up) > 0") == pytest.approx(0.5)
    assert value("skipped > 0") == pytest.approx(0.2)
    nothing = Summary(COLUMNS).judge(parse_condition("down < 0", COLUMNS, "mean"))
    assert nothing.holds is None


def test_without_text_nothing_that_was_said_is_kept() -> None:
    summary = Summary(COLUMNS)
    summary.add(batch_of([exchange(0, "a secret")], [Score.of(1.0)]), text=False)
    assert "secret" not in json.dumps(summary.to_json())
    assert summary.columns["up"].worst[0].dialogue_id == "d0"
