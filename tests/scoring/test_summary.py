from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.metrics.base import Score
from causerie.scoring.summary import WORST, Summary


def exchange(index: int, text: str = "fine") -> Exchange:
    return Exchange(Dialogue(f"d{index}", (Turn("A", "hi"), Turn("B", text))), 1)


values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60)


@given(values, st.booleans())
def test_summary_equals_statistics(numbers: list[float], higher: bool) -> None:
    summary = Summary.empty({"x": higher})
    for index, number in enumerate(numbers):
        summary.add(exchange(index), [Score.of(number)])
        summary = Summary.from_json(json.loads(json.dumps(summary.to_json())))  # as a resumed run
    column = summary.columns["x"]
    assert column.mean == pytest.approx(statistics.fmean(numbers), rel=1e-9, abs=1e-6)
    assert column.spread == pytest.approx(statistics.stdev(numbers), rel=1e-6, abs=1e-4)
    assert [w.value for w in column.worst] == sorted(numbers, reverse=not higher)[:WORST]


def test_unscored_are_counted_by_reason() -> None:
    summary = Summary.empty({"x": True})
    for score in (Score.unscored("no reference"), Score.of(float("nan")), Score.of(2.0)):
        summary.add(exchange(0), [score])
    assert summary.columns["x"].unscored == {"no reference": 1, "the value is nan": 1}
    assert summary.columns["x"].scored == 1


def test_excerpt_is_one_short_line() -> None:
    summary = Summary.empty({"x": True})
    summary.add(exchange(0, "a\n\x1b[31mb " * 1000), [Score.of(1)])
    text = summary.columns["x"].worst[0].text
    assert len(text) <= 90
    assert text.isprintable()
