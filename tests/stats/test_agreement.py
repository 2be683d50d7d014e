"""Agreement against NLTK, published examples and the definition; ceilings against scipy."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from scipy import stats

from causerie.stats import (
    fleiss_kappa,
    krippendorff_alpha,
    leave_one_out_ratings,
    mean_reliability,
    pearson,
    split_half,
)

NAN = math.nan

# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", the example with four
# observers, twelve units and missing values.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


@pytest.mark.parametrize(
    ("scale", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_the_published_example(scale, published):
    estimate = krippendorff_alpha(KRIPPENDORFF_2011, scale)
    assert estimate.value == pytest.approx(published, abs=0.0006)
    assert estimate.n == 11


def test_fleiss_kappa_of_the_published_example():
    # Fleiss' example as in the literature: 10 subjects, 14 raters, 5 categories, kappa .210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    ratings = [np.repeat(np.arange(5), row) for row in counts]
    assert fleiss_kappa(ratings).value == pytest.approx(0.210, abs=0.0005)


def alpha_by_definition(ratings, scale):
    """1 - observed / expected disagreement over all ordered pairs of values."""
    units = [[v for v in row if v == v] for row in ratings]
    units = [u for u in units if len(u) > 1]
    everything = [v for u in units for v in u]

    def distance(a, b):
        if scale == "nominal":
            return float(a != b)
        if scale == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in everything)
        ends = sum(v == low for v in everything) + sum(v == high for v in everything)
        return 0.0 if a == b else (between - ends / 2) ** 2

    n = len(everything)
    observed = sum(distance(a, b) / (len(u) - 1) for u in units for a, b in permutations(u, 2)) / n
    expected = sum(distance(a, b) for a, b in permutations(everything, 2)) / (n * (n - 1))
    return 1 - observed / expected


ratings = st.integers(1, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.5, 7.0, NAN]), min_size=raters, max_size=raters),
        min_size=1,
        max_size=10,
    )
)


@given(ratings, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_equals_its_definition(data, scale):
    estimate = krippendorff_alpha(data, scale)
    units = [[v for v in row if v == v] for row in data]
    usable = [u for u in units if len(u) > 1]
    assert estimate.n == len(usable)
    if len(usable) < 2 or len({v for u in usable for v in u}) < 2:
        assert estimate.value is None
        assert estimate.reason
    else:
        assert estimate.value == pytest.approx(alpha_by_definition(data, scale), abs=1e-9)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=15))
def test_agreement_equals_nltk(rows):
    assume(len({v for row in rows for v in row}) > 1)
    task = AnnotationTask(
        [(f"r{k}", i, v) for i, row in enumerate(rows) for k, v in enumerate(row)]
    )
    assert krippendorff_alpha(rows).value == pytest.approx(task.alpha())
    assert fleiss_kappa(rows).value == pytest.approx(task.pi())


def test_kappa_leaves_out_units_that_only_one_rated():
    assert fleiss_kappa([[1, 1], [1, 2], [2, NAN]]) == fleiss_kappa([[1, 1], [1, 2]])


def test_agreement_says_why_there_is_none():
    for measure in (krippendorff_alpha, fleiss_kappa):
        assert measure([[1, NAN]]).reason == "no unit has two ratings"
        assert measure([[2, 2], [2, 2]]).reason == "all ratings are equal"


def test_one_unit_shows_no_agreement_above_chance():
    for measure in (krippendorff_alpha, fleiss_kappa, leave_one_out_ratings):
        found = measure([[1, 2, 2], [5, NAN, NAN]])
        assert found.value is None
        assert "only one" in found.reason
        assert found.n == 1


@given(st.integers(0, 10_000), st.booleans())
def test_leave_one_out_ratings_does_not_depend_on_slots(seed, ranks):
    rng = np.random.default_rng(seed)
    data = rng.integers(1, 6, (15, 1)) + rng.random((15, 5)).round(1)
    data[rng.random(data.shape) < 0.3] = NAN
    value = leave_one_out_ratings(data, ranks=ranks).value
    assert leave_one_out_ratings(rng.permuted(data, axis=1), ranks=ranks).value == pytest.approx(
        value
    )


@pytest.mark.parametrize("ranks", [False, True])
def test_leave_one_out_ratings_of_equal_lists_is_the_pooled_correlation(ranks):
    rng = np.random.default_rng(7)
    data = rng.integers(1, 6, (25, 3)).astype(float) + rng.integers(0, 4, (25, 1))
    points = [(row[k], np.delete(row, k).mean()) for row in data for k in range(3)]
    x, y = zip(*points, strict=True)
    wanted = (stats.spearmanr if ranks else stats.pearsonr)(x, y).statistic
    assert leave_one_out_ratings(data, ranks=ranks).value == pytest.approx(wanted)


def test_ceilings_say_why_there_is_none():
    assert "two ratings" in leave_one_out_ratings([[1, NAN], [NAN, 2]]).reason
    assert "equal" in leave_one_out_ratings([[3, 3], [3, 3]]).reason
    assert "two ratings" in split_half(pearson, [[1, NAN]], seed=0).reason
    assert "same score" in split_half(pearson, [[3, 3], [3, 3]], seed=0).reason


def test_split_half_finds_the_reliability_of_the_mean():
    rng = np.random.default_rng(8)
    truth = rng.standard_normal((4000, 1))
    data = truth + rng.standard_normal((4000, 6))
    assert split_half(pearson, data, splits=20, seed=0).value == pytest.approx(6 / 7, abs=0.01)


def test_split_half_of_two_raters_is_spearman_brown():
    # Two ratings have one split, up to which half is which; give the halves equal spread.
    data = np.array([[1, 2], [2, 1], [3, 4], [4, 3], [5, 5], [1, 1]], dtype=float)
    both = np.vstack([data, data[:, ::-1]])
    values = [split_half(pearson, both, splits=1, seed=s).value for s in range(50)]
    r = stats.pearsonr(both[:, 0], both[:, 1]).statistic
    assert np.mean(values) == pytest.approx(2 * r / (1 + r), abs=0.02)


def test_split_half_of_an_odd_number_steps_up_to_all_of_it():
    rng = np.random.default_rng(9)
    data = rng.standard_normal((6000, 1)) + rng.standard_normal((6000, 3))
    assert split_half(pearson, data, splits=20, seed=0).value == pytest.approx(3 / 4, abs=0.02)


def cronbach(data):
    k = data.shape[1]
    whole = data.sum(axis=1).var(ddof=1)
    return k / (k - 1) * (1 - data.var(axis=0, ddof=1).sum() / whole)


def test_reliability_of_means_is_cronbachs_alpha_where_columns_are_alike():
    rng = np.random.default_rng(10)
    data = rng.standard_normal((3000, 1)) + 2 * rng.standard_normal((3000, 3))
    found = mean_reliability(data, range(3000), seed=0)
    assert found.value == pytest.approx(cronbach(data), abs=0.003)
    assert found.low < 3 / 7 < found.high


def test_reliability_of_means_by_hand():
    # Means 2 and 6, grand mean 4: between 2 * (4 + 4) / 1, within (2 + 2) / 2.
    assert mean_reliability([[1, 3], [5, 7]], "ab", seed=0).value == pytest.approx(1 - 2 / 16)
    # Of three and two values; the row with one does not count. Grand mean 18 / 5.
    between = 3 * (3 - 3.6) ** 2 + 2 * (4.5 - 3.6) ** 2
    within = (2 + 0.5) / 3
    uneven = [[2, 3, 4], [4, 5, NAN], [9, NAN, NAN]]
    assert mean_reliability(uneven, "abc", seed=0).value == pytest.approx(1 - within / between)


def test_random_raters_are_not_reliable():
    noise = np.random.default_rng(11).standard_normal((400, 3))
    found = mean_reliability(noise, np.arange(400) // 4, seed=0)
    assert found.low < 0 < found.high
    assert mean_reliability([[1, NAN]], "a", seed=0).reason == "no unit has two ratings"
    assert mean_reliability([[2, 2], [2, 2]], "ab", seed=0).reason == "all ratings are equal"


def test_ratings_of_one_occasion_are_not_compared_with_each_other():
    """Two votes on each of two occasions: each is set against the other occasion's mean."""
    data = np.random.default_rng(12).random((30, 4))
    points = [
        (row[k], row[2:].mean() if k < 2 else row[:2].mean()) for row in data for k in range(4)
    ]
    wanted = stats.pearsonr(*zip(*points, strict=True)).statistic
    found = leave_one_out_ratings(data, groups=[0, 0, 1, 1])
    assert found.value == pytest.approx(wanted)
