"""Permutation tests against a direct loop; false positives; Holm and rank clusters."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from causerie.stats import (
    holm,
    pearson,
    permutation_tests,
    permutations_for,
    rank_clusters,
    spearman,
)

NAN = math.nan


def exact_p(x, y, human, labels, ranks):
    """Two-sided p over all swaps of whole clusters, correlations recomputed by numpy."""
    if ranks:
        x, y, human = (stats.rankdata(v) for v in (x, y, human))
    x, y = stats.zscore(x), stats.zscore(y)
    names = sorted(set(labels))

    def difference(swap):
        swapped = np.isin(labels, [n for n, s in zip(names, swap, strict=True) if s])
        one, other = np.where(swapped, y, x), np.where(swapped, x, y)
        return np.corrcoef(one, human)[0, 1] - np.corrcoef(other, human)[0, 1]

    found = [difference(swap) for swap in product([0, 1], repeat=len(names))]
    return np.mean(np.abs(found) >= abs(found[0]) - 1e-12), found[0]


@pytest.mark.parametrize("ranks", [False, True])
def test_p_approaches_that_of_all_swaps(ranks):
    rng = np.random.default_rng(2)
    labels = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7])
    human = rng.integers(1, 6, 13).astype(float)
    scores = human + rng.standard_normal((3, 13)) * [[0.5], [1], [30]]
    scores[2, 4] = NAN
    tests = permutation_tests(scores, human, labels, ranks=ranks, permutations=40_000, seed=0)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        both = ~np.isnan(scores[a] + scores[b])
        p, difference = exact_p(scores[a, both], scores[b, both], human[both], labels[both], ranks)
        assert tests.difference[a, b] == pytest.approx(difference)
        assert tests.difference[b, a] == pytest.approx(-difference)
        assert tests.p[a, b] == tests.p[b, a] == pytest.approx(p, abs=0.012)


@settings(max_examples=30)
@given(st.integers(0, 100_000), st.booleans())
def test_differences_are_those_of_the_correlations(seed, ranks):
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, 30).astype(float)
    scores = rng.integers(0, 5, (3, 30)) + human
    tests = permutation_tests(
        scores, human, np.arange(30) // 3, permutations=1, seed=0, ranks=ranks
    )
    values = [e.value for e in (spearman if ranks else pearson)(scores, human)]
    wanted = np.subtract.outer(values, values)
    off_diagonal = ~np.eye(3, dtype=bool)
    assert tests.difference[off_diagonal] == pytest.approx(wanted[off_diagonal], abs=1e-9)


def test_equal_metrics_are_equal_and_different_ones_are_not():
    rng = np.random.default_rng(3)
    human = rng.standard_normal(400)
    good = human + 0.3 * rng.standard_normal(400)
    scores = [good, 10 * good - 3, human + 3 * rng.standard_normal(400)]
    p = permutation_tests(scores, human, np.arange(400) // 4, permutations=999, seed=1).p
    assert p[0, 1] == 1
    assert p[0, 2] == p[1, 2] == pytest.approx(1 / 1000)
    assert np.isnan(np.diag(p)).all()


def test_metrics_that_cannot_be_compared_have_no_p():
    human = np.arange(6.0)
    scores = [human, [1.0] * 6, [NAN] * 6, -human]
    tests = permutation_tests(scores, human, range(6), permutations=50, seed=0)
    assert np.isnan(tests.p[1]).all()
    assert np.isnan(tests.p[2]).all()
    assert tests.p[0, 3] < 0.2


def test_early_stopping_settles_large_p_only():
    rng = np.random.default_rng(4)
    human = rng.standard_normal(300)
    noise = rng.standard_normal((3, 300))
    scores = human + noise * [[1], [1], [4]]
    labels = np.arange(300) // 3
    full = permutation_tests(scores, human, labels, permutations=5000, seed=5)
    short = permutation_tests(scores, human, labels, permutations=5000, stop_after=100, seed=5)
    assert full.p[0, 1] > 0.2
    assert (full.permutations[~np.eye(3, dtype=bool)] == 5000).all()
    assert short.permutations[0, 1] == 500
    assert short.p[0, 1] == pytest.approx(full.p[0, 1], abs=0.1)
    assert short.permutations[0, 2] == 5000
    assert short.p[0, 2] == full.p[0, 2]


def test_same_seed_same_p():
    rng = np.random.default_rng(6)
    human, scores = rng.standard_normal(40), rng.standard_normal((2, 40))
    first, second = (
        permutation_tests(scores, human, range(40), permutations=700, seed=9).p for _ in range(2)
    )
    assert np.array_equal(first, second, equal_nan=True)


def false_positives(runs, ranks, permutations, seed=7):
    """Share of p <= .05 for two equally good metrics on about 270 items in 60 clusters."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(runs):
        labels = np.repeat(np.arange(60), rng.integers(3, 7, 60))
        shared, own = rng.standard_normal((3, 60)), rng.standard_normal((3, len(labels)))
        truth, *noise = math.sqrt(0.4) * shared[:, labels] + math.sqrt(0.6) * own
        human = np.digitize(truth, [-1.2, -0.3, 0.4, 1.3])
        scores = 0.5 * truth + np.array(noise)
        p = permutation_tests(
            scores, human, labels, ranks=ranks, permutations=permutations, seed=rng
        ).p
        hits += p[0, 1] <= 0.05
    return hits / runs


@pytest.mark.parametrize("ranks", [False, True], ids=["pearson", "spearman"])
def test_false_positives_are_rare(ranks):
    assert 0.02 <= false_positives(400, ranks, permutations=199) <= 0.085


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [False, True], ids=["pearson", "spearman"])
def test_false_positive_rate_is_nominal_within_a_point(ranks):
    assert false_positives(6000, ranks, permutations=399) == pytest.approx(0.05, abs=0.01)


def test_holm_on_a_worked_example():
    # Smallest times 4, next times 3, and never below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, NAN, 0.6]).tolist()[0] == 1
    assert np.isnan(holm([0.5, NAN, 0.6])[1])
    assert holm([]).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p):
    ordered = sorted(p)
    rejected = 0
    while rejected < len(p) and ordered[rejected] * (len(p) - rejected) <= 0.05:
        rejected += 1
    assert (holm(p) <= 0.05).sum() == rejected


def test_holm_counts_each_pair_of_a_matrix_once():
    matrix = np.array([[NAN, 0.01, 0.04], [0.01, NAN, 0.03], [0.04, 0.03, NAN]])
    adjusted = holm(matrix)
    assert adjusted[0, 1] == adjusted[1, 0] == pytest.approx(0.03)
    assert adjusted[0, 2] == adjusted[1, 2] == pytest.approx(0.06)


def test_rank_clusters_break_at_the_first_significant_difference():
    values = [0.1, 0.5, 0.4, NAN, 0.3]
    wins = np.zeros((5, 5), bool)
    wins[1, 4] = True  # .5 beats .3, so .3 opens rank 2, which .1 joins
    assert rank_clusters(values, wins) == [2, 1, 1, None, 2]
    wins[4, 0] = True
    assert rank_clusters(values, wins) == [3, 1, 1, None, 2]


def test_a_win_of_the_lower_metric_opens_no_rank():
    wins = np.zeros((2, 2), bool)
    wins[1, 0] = True
    assert rank_clusters([0.5, 0.4], wins) == [1, 1]


@pytest.mark.parametrize("tests", [1, 33, 561, 4950])
def test_permutations_suffice_for_holm(tests):
    permutations = permutations_for(tests, 0.05)
    smallest = 1 / (permutations + 1)
    assert holm([smallest, *[1.0] * (tests - 1)])[0] <= 0.025
    assert permutations <= 40 * tests
