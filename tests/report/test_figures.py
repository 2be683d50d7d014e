"""Streams of scores against the standard library's statistics and plain sorting."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.metrics.base import EMPTY, Column, Score
from causerie.report.charts import BarAxis, histograms
from causerie.report.figures import MAX_CELLS, Figures, Quote, quantile

scores = st.floats(-1e6, 1e6)


def figures_of(values: list[float], column: Column = Column(), start: int = 0) -> Figures:  # noqa: B008
    figures = Figures(column)
    for row, value in enumerate(values, start):
        figures.add([Score(value)], lambda _, row=row: Quote(row, row, f"d{row}", 1))
    return figures


@given(st.lists(scores, min_size=2, max_size=60))
def test_mean_and_spread_are_the_textbook_ones(values: list[float]) -> None:
    figures = figures_of(values)
    assert figures.mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-6)
    assert figures.spread == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert (figures.low, figures.high) == (min(values), max(values))


def test_one_value_has_no_spread_and_none_is_counted_apart() -> None:
    figures = figures_of([2.0])
    figures.add([Score.unscored("why")], lambda _: Quote(1, 1, "d", 1))
    assert (figures.scored, figures.unscored, figures.spread) == (1, {"why": 1}, None)
    assert (figures.mean, figures.share_unscored) == (2.0, 0.5)


@given(st.lists(scores, min_size=1, max_size=20), st.integers(1, 5), st.sampled_from([None, -2e6]))
def test_empty_responses_count_as_the_worst_value(
    values: list[float], empty: int, bound: float | None
) -> None:
    figures = figures_of(values, Column(range=(bound, None), calibrated=True))
    for row in range(empty):
        figures.add([EMPTY], lambda _, row=row: Quote(100 + row, 0, "e", 1))
    counted = [*values, *[min(values) if bound is None else bound] * empty]
    assert figures.mean == pytest.approx(statistics.fmean(counted), rel=1e-9, abs=1e-6)
    assert figures.spread == pytest.approx(statistics.stdev(counted), rel=1e-6, abs=1e-5)
    assert figures.empty == empty
    assert figures.percentile == 0
    leading = [quote.value for quote in figures.worst]
    assert leading == [*[None] * empty, *sorted(values)][: len(leading)]


def test_mean_percentile_counts_empty_responses_as_nought() -> None:
    figures = Figures(Column(calibrated=True))
    for row, score in enumerate((Score(1.0, 90.0), Score(1.0, 60.0), EMPTY)):
        figures.add([score], lambda _, row=row: Quote(row, row, "d", 1))
    assert figures.percentile == 50.0


@given(st.lists(scores, min_size=1, max_size=60), st.integers(1, 60))
def test_how_many_come_at_a_time_does_not_matter(values: list[float], at_a_time: int) -> None:
    figures = Figures(Column())
    for start in range(0, len(values), at_a_time):
        part = [Score(value) for value in values[start : start + at_a_time]]
        figures.add(part, lambda n, start=start: Quote(start + n, start + n, f"d{start + n}", 1))
    assert figures == figures_of(values)


@given(st.lists(scores, min_size=1, max_size=40), st.randoms())
def test_order_does_not_matter(values: list[float], shuffler: random.Random) -> None:
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert figures_of(values).distribution() == figures_of(shuffled).distribution()


def test_a_long_stream_stays_small_and_close_to_the_truth() -> None:
    source = random.Random(1)
    values = [source.lognormvariate(0, 1.5) for _ in range(20_000)]
    cells = figures_of(values).distribution()
    assert len(cells) <= MAX_CELLS
    assert sum(count for _, count in cells) == len(values)
    assert cells == figures_of(values[::-1]).distribution()
    ordered = sorted(values)
    for share in (0.25, 0.5, 0.75, 0.95):
        truth = ordered[int(share * len(ordered))]
        assert quantile(cells, share) == pytest.approx(truth, abs=0.2)


@given(st.lists(scores, min_size=1, max_size=40))
def test_few_values_are_kept_exactly(values: list[float]) -> None:
    kept = [middle for middle, count in figures_of(values).distribution() for _ in range(count)]
    assert kept == pytest.approx(sorted(values), rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_every_value_has_a_bar_on_any_axis(values: list[float]) -> None:
    cells = figures_of(values).distribution()
    axis = BarAxis.of(cells)
    assert 0 < axis.bars <= 60
    inside = 0
    for value, count in cells:
        bar = axis.bar_of(value)
        assert 0 <= bar < axis.bars
        if axis.first - 2e-6 < value / axis.step < axis.last + 2e-6:
            inside += count
            width = axis.step / 5
            assert axis.edge(bar) - 0.01 * width <= value <= axis.edge(bar + 1) + 0.01 * width
    assert inside + axis.below + axis.above == len(values)


def test_a_far_outlier_does_not_flatten_the_rest_and_is_mentioned() -> None:
    figures = figures_of([*map(float, range(20)), 1e6])
    axis = BarAxis.of(figures.distribution())
    assert axis.last * axis.step < 100
    assert axis.above == 1
    assert "1 above this range" in histograms([("a", figures)])


def test_shares_from_zero_to_one_have_an_axis_from_zero_to_one() -> None:
    axis = BarAxis.of(figures_of([0.0, 0.1, 0.4, 0.5, 0.9, 1.0]).distribution())
    assert (axis.edge(0), axis.edge(axis.bars)) == (0.0, 1.0)
    assert (axis.below, axis.above, axis.bar_of(1.0)) == (0, 0, axis.bars - 1)


def test_an_empty_system_and_an_empty_metric_are_said_to_be_empty() -> None:
    assert "nothing scored" in histograms([("a", figures_of([1.0])), ("b", Figures(Column()))])
    assert "No response has this score" in histograms([("a", Figures(Column()))])
