"""Correlations against scipy, brute force and regression residuals."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from causerie.stats import (
    group_values,
    kendall,
    mean_of_groups,
    partial,
    pearson,
    pearson_r,
    point_biserial,
    spearman,
    system_level,
)

ties = st.integers(-3, 3).map(float)
reals = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3))
values = st.one_of(ties, reals, st.just(math.nan))
matrices = st.integers(0, 25).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(values, min_size=n, max_size=n), min_size=1, max_size=4),
        st.lists(st.one_of(ties, st.just(math.nan)), min_size=n, max_size=n),
    )
)


def brute_force_tau(x, y):
    pairs = list(combinations(range(len(x)), 2))
    a = [np.sign(x[i] - x[j]) for i, j in pairs]
    b = [np.sign(y[i] - y[j]) for i, j in pairs]
    return np.dot(a, b) / math.sqrt(np.abs(a).sum() * np.abs(b).sum())


@pytest.mark.parametrize(
    ("ours", "oracle"),
    [
        (pearson, lambda x, y: stats.pearsonr(x, y).statistic),
        (spearman, lambda x, y: stats.spearmanr(x, y).statistic),
        (kendall, brute_force_tau),
    ],
)
@given(data=matrices)
def test_equals_the_oracle_on_the_items_that_are_complete(ours, oracle, data):
    scores, human = data
    for row, estimate in zip(scores, ours(scores, human), strict=True):
        complete = [(a, b) for a, b in zip(row, human, strict=True) if a == a and b == b]
        assert estimate.n == len(complete)
        x, y = map(np.array, zip(*complete, strict=True)) if complete else ((), ())
        if len(complete) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
            assert estimate.value is None
            assert estimate.reason
        else:
            assert estimate.reason is None
            assert estimate.value == pytest.approx(oracle(x, y), abs=1e-9)


def test_reasons_say_what_is_wrong():
    nan = math.nan
    rows = [[nan, nan, nan], [1, nan, nan], [2, 2, 2], [1, 2, 3], [math.inf, 1, nan]]
    reasons = [e.reason for e in pearson(rows, [1, 2, 4])]
    assert "no item" in reasons[0]
    assert "only 1" in reasons[1]
    assert "same score" in reasons[2]
    assert reasons[3] is None
    assert "only 1" in reasons[4]
    assert "judgements are all equal" in pearson([1, 2, 3], [5, 5, 5])[0].reason


def test_two_items_are_perfectly_correlated():
    for correlation in (pearson, spearman, kendall):
        assert correlation([1.0, 2.0], [5.0, 3.0])[0].value == pytest.approx(-1)


def test_huge_and_tiny_scores_do_not_overflow():
    x = np.array([1.0, 2.0, 4.0, 3.0])
    wanted = pearson(x, [1, 2, 3, 4])[0].value
    assert pearson(x * 1e300, [1, 2, 3, 4])[0].value == pytest.approx(wanted)
    assert pearson(x * 1e-300, [1, 2, 3, 4])[0].value == pytest.approx(wanted)


def test_lengths_must_match():
    with pytest.raises(ValueError, match="3 scores but 2"):
        pearson([1, 2, 3], [1, 2])


def test_point_biserial_equals_scipy_and_takes_two_classes():
    rng = np.random.default_rng(0)
    human = rng.integers(0, 2, 40)
    scores = rng.standard_normal((3, 40)) + human
    found = [e.value for e in point_biserial(scores, human)]
    assert found == pytest.approx([stats.pointbiserialr(human, row).statistic for row in scores])
    with pytest.raises(ValueError, match="two classes, not 3"):
        point_biserial([1, 2, 3], [0, 1, 2])


@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_partial_equals_correlation_of_precision_matrix(seed, covariates, ranks):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 6, (covariates, 30)) + 0.1 * rng.standard_normal((covariates, 30))
    x = rng.standard_normal((2, 30)) + z.sum(axis=0)
    y = rng.integers(1, 6, 30) + z[0]
    for row, estimate in zip(x, partial(x, y, z, ranks=ranks), strict=True):
        data = np.vstack([row, y, z])
        data = stats.rankdata(data, axis=1) if ranks else data
        precision = np.linalg.inv(np.cov(data))
        wanted = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
        assert estimate.value == pytest.approx(wanted, abs=1e-8)


def test_partial_drops_incomplete_items_and_explains_degenerate_ones():
    rng = np.random.default_rng(1)
    x, y, z = rng.standard_normal((3, 12))
    holes = z.copy()
    holes[3] = math.nan
    keep = np.arange(12) != 3
    assert partial(x, y, holes)[0] == partial(x[keep], y[keep], z[keep])[0]
    assert "determine the metric" in partial(2 * z + 1, y, z)[0].reason
    assert "determine the human" in partial(x, 3 - z, z)[0].reason
    assert "only 3 of the 4" in partial(x[:3], y[:3], z[:3])[0].reason
    constant = partial(x, y, np.full(12, 7.0))[0]
    assert constant.value == pytest.approx(pearson(x, y)[0].value)


@given(st.integers(0, 10_000))
def test_within_context_is_the_mean_over_groups_that_have_a_value(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 6, 30)
    x, y = rng.integers(0, 4, (2, 30)).astype(float), rng.integers(1, 4, 30).astype(float)
    x[0, 5] = math.nan
    for row, estimate in zip(x, mean_of_groups(group_values(spearman, x, y, groups)), strict=True):
        found = []
        for group in dict.fromkeys(groups.tolist()):
            members = (groups == group) & ~np.isnan(row)
            if members.sum() > 1 and np.ptp(row[members]) and np.ptp(y[members]):
                found.append(stats.spearmanr(row[members], y[members]).statistic)
        assert estimate.n == len(found)
        assert estimate.value == (pytest.approx(np.mean(found)) if found else None)


def test_within_context_without_any_usable_group():
    estimate = mean_of_groups(group_values(pearson, [1, 2, 3], [1, 2, 3], ["a", "b", "c"]))[0]
    assert estimate.value is None
    assert "no context" in estimate.reason


def test_system_level_correlates_means_of_complete_items():
    systems = ["a", "a", "b", "b", "c", "c"]
    human = [1.0, 3.0, 5.0, math.nan, 4.0, 4.0]
    scores = [[0.0, 2.0, 9.0, 100.0, 2.0, 4.0]]
    wanted = stats.pearsonr([1, 9, 3], [2, 5, 4]).statistic
    estimate = system_level(pearson, scores, human, systems)[0]
    assert estimate.value == pytest.approx(wanted)
    assert estimate.n == 3


def test_two_series_correlate_unless_one_is_constant() -> None:
    a, b = np.array([4.0, 2, 3]), np.array([4.0, 3, 2])
    assert pearson_r(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert math.isnan(pearson_r(np.ones(3), np.arange(3.0)))
    rounded = 3.2 + np.array([0.0, 1.0, 0.0]) * np.spacing(3.2)
    assert math.isnan(pearson_r(np.arange(3.0), rounded))
