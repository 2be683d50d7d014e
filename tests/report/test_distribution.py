"""Streams of scores against the standard library's statistics and plain sorting."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.report.charts import BarAxis, histograms
from causerie.report.distribution import MAX_BINS, Distribution, quantile

scores = st.floats(-1e6, 1e6)


def distribution_of(values: list[float]) -> Distribution:
    distribution = Distribution()
    for value in values:
        distribution.add(value)
    return distribution


@given(st.lists(scores, min_size=2, max_size=60))
def test_mean_and_spread_are_the_textbook_ones(values: list[float]) -> None:
    distribution = distribution_of(values)
    assert distribution.mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-6)
    assert distribution.spread == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert (distribution.least, distribution.greatest) == (min(values), max(values))


def test_one_value_has_no_spread_and_none_is_counted_apart() -> None:
    distribution = distribution_of([2.0])
    distribution.add(None)
    assert (distribution.count, distribution.unscored, distribution.spread) == (1, 1, None)


@given(st.lists(scores, min_size=1, max_size=40), st.randoms())
def test_order_does_not_matter(values: list[float], shuffler: random.Random) -> None:
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert distribution_of(values).cells() == distribution_of(shuffled).cells()


def test_a_long_stream_stays_small_and_close_to_the_truth() -> None:
    source = random.Random(1)
    values = [source.lognormvariate(0, 1.5) for _ in range(20_000)]
    cells = distribution_of(values).cells()
    assert len(cells) <= MAX_BINS
    assert sum(count for _, count in cells) == len(values)
    assert cells == distribution_of(values[::-1]).cells()
    ordered = sorted(values)
    for share in (0.25, 0.5, 0.75, 0.95):
        truth = ordered[int(share * len(ordered))]
        assert quantile(cells, share) == pytest.approx(truth, abs=0.2)


@given(st.lists(scores, min_size=1, max_size=40))
def test_few_values_are_kept_exactly(values: list[float]) -> None:
    kept = [middle for middle, count in distribution_of(values).cells() for _ in range(count)]
    assert kept == pytest.approx(sorted(values), rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_every_value_has_a_bar_on_any_axis(values: list[float]) -> None:
    cells = distribution_of(values).cells()
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
    distribution = distribution_of([*map(float, range(20)), 1e6])
    axis = BarAxis.of(distribution.cells())
    assert axis.last * axis.step < 100
    assert axis.above == 1
    assert "1 above this range" in histograms(["a"], [distribution])


def test_shares_from_zero_to_one_have_an_axis_from_zero_to_one() -> None:
    axis = BarAxis.of(distribution_of([0.0, 0.1, 0.4, 0.5, 0.9, 1.0]).cells())
    assert (axis.edge(0), axis.edge(axis.bars)) == (0.0, 1.0)
    assert (axis.below, axis.above, axis.bar_of(1.0)) == (0, 0, axis.bars - 1)


def test_an_empty_system_and_an_empty_metric_are_said_to_be_empty() -> None:
    assert "nothing scored" in histograms(["a", "b"], [distribution_of([1.0]), Distribution()])
    assert "No response has this score" in histograms(["a"], [Distribution()])
