"""Two systems: oracles for means, win rates and p-values; false positives and coverage."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from causerie.stats import compare_paired, compare_unpaired

NAN = math.nan


def test_paired_by_hand():
    a = [[3.0, 2.0, 5.0, NAN, 1.0]]
    b = [[1.0, 2.0, 6.0, 4.0, 0.0]]
    result = compare_paired(a, b, ["x", "x", "y", "y", "z"], seed=0)[0]
    assert result.difference.value == pytest.approx((2 + 0 - 1 + 1) / 4)
    assert result.difference.n == 4
    assert result.win_rate.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert result.difference.low <= result.difference.value <= result.difference.high


def test_paired_p_approaches_that_of_all_sign_flips():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, (2, 20)) + np.array([[1], [0]])
    labels = np.arange(20) // 2
    sums = np.bincount(labels, a - b)
    flips = [abs(np.dot(s, sums)) for s in product([1, -1], repeat=10)]
    wanted = np.mean([f >= abs(sums.sum()) for f in flips])
    assert compare_paired(a, b, labels, seed=1)[0].p == pytest.approx(wanted, abs=0.015)


def test_swapping_the_systems_turns_everything_round():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3, 40))
    labels = np.arange(40) // 4
    for forth, back in zip(
        compare_paired(a, b, labels, seed=2), compare_paired(b, a, labels, seed=2), strict=True
    ):
        assert forth.difference.value == pytest.approx(-back.difference.value)
        assert forth.difference.low == pytest.approx(-back.difference.high)
        assert forth.win_rate.value == pytest.approx(1 - back.win_rate.value)
        assert forth.p == back.p


def test_identical_systems():
    rng = np.random.default_rng(2)
    a = rng.standard_normal(30)
    result = compare_paired(a, a, np.arange(30) // 3, seed=0)[0]
    assert (result.difference.value, result.win_rate.value, result.p) == (0, 0.5, 1)
    unpaired = compare_unpaired(a, np.arange(30) // 3, a, np.arange(30) // 3, seed=0)[0]
    assert (unpaired.difference.value, unpaired.p) == (0, 1)
    assert unpaired.win_rate.value == pytest.approx(0.5)


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_unpaired_means_and_win_rate(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, 12).astype(float), rng.integers(1, 5, 17).astype(float)
    a[3] = NAN
    result = compare_unpaired(
        a, np.arange(12) // 3, b, np.arange(17) // 4, resamples=50, permutations=50, seed=seed
    )[0]
    kept = np.delete(a, 3)
    assert result.difference.value == pytest.approx(kept.mean() - b.mean())
    wins = [(x > y) + 0.5 * (x == y) for x in kept for y in b]
    assert result.win_rate.value == pytest.approx(np.mean(wins))
    assert result.difference.n == 28


def test_unpaired_p_of_single_items_approaches_welchs_exact_permutation():
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal(5) + 1.5, 3 * rng.standard_normal(6)
    both = np.concatenate([a, b])

    def t(chosen):
        rest = np.setdiff1d(np.arange(11), chosen)
        return abs(stats.ttest_ind(both[list(chosen)], both[rest], equal_var=False).statistic)

    observed = t(range(5))
    wanted = np.mean([t(c) >= observed - 1e-9 for c in combinations(range(11), 5)])
    found = compare_unpaired(a, range(5), b, range(6), permutations=20_000, seed=0)[0].p
    assert found == pytest.approx(wanted, abs=0.012)


def test_too_little_to_compare_has_a_reason():
    empty = compare_paired([[NAN, 1.0]], [[1.0, NAN]], ["a", "b"], seed=0)[0]
    assert empty.p is None
    assert "both systems" in empty.difference.reason
    lone = compare_unpaired([1.0, 2.0], ["a", "a"], [1.0, 2.0], ["c", "d"], seed=0)[0]
    assert lone.p is None
    assert "two dialogues" in lone.difference.reason
    missing = compare_unpaired([NAN, NAN], ["a", "b"], [1.0, 2.0], ["c", "d"], seed=0)[0]
    assert missing.difference.value is None


def test_paired_scores_must_match():
    with pytest.raises(ValueError, match="one shape"):
        compare_paired([1.0, 2.0], [1.0], ["a", "b"], seed=0)


def unpaired_errors(runs, seed):
    """False positives at .05 and coverage at .95 where spread and numbers differ."""
    rng = np.random.default_rng(seed)
    rejected = covered = 0
    for _ in range(runs):
        sides = []
        for dialogues, spread in ((40, 1.0), (80, 2.0)):
            labels = np.repeat(np.arange(dialogues), rng.integers(2, 7, dialogues))
            effect = rng.standard_normal(dialogues)[labels]
            sides += [spread * (effect + rng.standard_normal(len(labels))), labels]
        result = compare_unpaired(*sides, resamples=500, permutations=199, seed=rng)[0]
        rejected += result.p <= 0.05
        covered += result.difference.low <= 0 <= result.difference.high
    return rejected / runs, covered / runs


def test_unpaired_errors_are_roughly_nominal():
    rejected, covered = unpaired_errors(200, 5)
    assert 0.01 <= rejected <= 0.1
    assert 0.9 <= covered <= 0.99


@pytest.mark.slow
def test_unpaired_errors_are_nominal():
    rejected, covered = unpaired_errors(4000, 6)
    assert rejected == pytest.approx(0.05, abs=0.012)
    assert covered == pytest.approx(0.95, abs=0.015)
