"""Pairwise accuracy against brute force; soft pairwise accuracy against enumeration."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.stats import (
    accuracy,
    group_accuracies,
    pairwise_accuracy,
    soft_pairwise_accuracy,
)


def brute_force(x, y, groups, epsilon):
    """Mean over groups of the share of pairs ordered (or tied) as people have it."""
    shares = []
    for group in set(groups):
        members = [i for i, g in enumerate(groups) if g == group and x[i] == x[i] and y[i] == y[i]]
        right = []
        for i, j in combinations(members, 2):
            decision = 0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j])
            right.append(decision == np.sign(y[i] - y[j]))
        if right:
            shares.append(np.mean(right))
    return np.mean(shares) if shares else math.nan


cases = st.integers(0, 14).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.5, 3.0, math.nan]), min_size=n, max_size=n),
        st.lists(st.sampled_from([1.0, 2.0, 3.0, math.nan]), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


@given(cases, st.booleans())
def test_epsilon_is_the_smallest_best_threshold(case, pooled):
    x, y, labels = case
    groups = [0] * len(x) if pooled else labels
    result = pairwise_accuracy(x, y, None if pooled else labels)[0]
    gaps = {abs(a - b) for a, b in combinations([v for v in x if v == v], 2)}
    found = [(brute_force(x, y, groups, e), -e) for e in {0.0} | gaps]
    if math.isnan(found[0][0]):
        assert result.estimate.value is None
        assert "no two items" in result.estimate.reason
        return
    scored = [i for i in range(len(x)) if x[i] == x[i] and y[i] == y[i]]
    compared = [(i, j) for i, j in combinations(scored, 2) if groups[i] == groups[j]]
    if all(y[i] == y[j] for i, j in compared):
        assert result.estimate.value is None
        assert "all equal" in result.estimate.reason
        return
    best = max(accuracy for accuracy, _ in found)
    assert result.estimate.value == pytest.approx(best)
    assert result.epsilon == min(-e for accuracy, e in found if accuracy > best - 1e-9)


def test_pair_count_and_perfect_metric():
    result = pairwise_accuracy([[1.0, 2.0, 2.0, 9.0], [4.0, 3.0, 3.0, 1.0]], [1, 2, 2, 3])
    assert result[0].estimate.value == pytest.approx(1)
    assert result[0].epsilon == 0
    assert result[0].estimate.n == 6
    assert result[1].estimate.value == pytest.approx(1 / 6)


def test_noise_on_ties_is_calibrated_away():
    human = np.repeat([1.0, 2.0, 3.0], 10)
    noisy = human + 0.1 * np.sin(np.arange(30))
    result = pairwise_accuracy(noisy, human)[0]
    assert result.estimate.value == pytest.approx(1)
    assert 0.1 < result.epsilon < 0.8


def test_too_many_pairs_is_a_reason(monkeypatch):
    monkeypatch.setattr(accuracy, "MOST_PAIRS", 5)
    assert "take a sample" in pairwise_accuracy(range(4), range(4))[0].estimate.reason


@given(cases, st.sampled_from([0.0, 0.25, 1.0]))
def test_group_accuracies_average_to_the_grouped_accuracy(case, epsilon):
    x, y, labels = case
    found = group_accuracies(x, y, labels, [epsilon])[0]
    assert len(found) == len(set(labels))
    defined = found[~np.isnan(found)]
    wanted = brute_force(x, y, labels, epsilon)
    assert (math.isnan(wanted) and len(defined) == 0) or np.mean(defined) == pytest.approx(wanted)


def exact_p(differences):
    """One-sided p by enumerating all sign flips, equals counting half."""
    observed = sum(differences)
    flips = [np.dot(s, differences) for s in product([1, -1], repeat=len(differences))]
    return np.mean([(f > observed + 1e-9) + 0.5 * (abs(f - observed) <= 1e-9) for f in flips])


def test_soft_pairwise_accuracy_approaches_the_exact_permutation_test():
    rng = np.random.default_rng(3)
    systems, items = 4, 7
    human = rng.integers(1, 6, (systems, items)).astype(float)
    metric = human + 2 * rng.standard_normal((systems, items))
    metric[1, 2] = math.nan
    wanted = []
    for a, b in combinations(range(systems), 2):
        shared = ~np.isnan(metric[a] - metric[b])
        p_human = exact_p((human[a] - human[b])[shared])
        p_metric = exact_p((metric[a] - metric[b])[shared])
        wanted.append(1 - abs(p_human - p_metric))
    labels = np.repeat(np.arange(systems), items), np.tile(np.arange(items), systems)
    found = soft_pairwise_accuracy(
        metric.ravel(), human.ravel(), *labels, permutations=100_000, seed=0
    )[0]
    assert found.n == 6
    assert found.value == pytest.approx(np.mean(wanted), abs=0.005)


def test_soft_pairwise_accuracy_of_the_judgement_itself_and_of_its_opposite():
    rng = np.random.default_rng(4)
    systems = np.repeat(["x", "y", "z"], 30)
    items = np.tile(np.arange(30), 3)
    human = np.repeat([1.0, 3.0, 5.0], 30) + rng.standard_normal(90)
    same, opposite, constant = soft_pairwise_accuracy(
        [human, -human, np.zeros(90)], human, systems, items, seed=1
    )
    assert same.value == 1  # the same swaps serve both
    assert opposite.value == pytest.approx(0, abs=0.01)
    assert constant.value == pytest.approx(0.5, abs=0.01)


def test_soft_pairwise_accuracy_does_not_depend_on_the_order_of_systems():
    rng = np.random.default_rng(5)
    human, metric = rng.integers(1, 4, (2, 40)).astype(float)
    systems, items = np.repeat([0, 1, 2, 3], 10), np.tile(np.arange(10), 4)
    forth = soft_pairwise_accuracy(metric, human, systems, items, seed=1)[0].value
    order = np.concatenate([np.arange(30, 40), np.arange(20, 30), np.arange(20)])
    back = soft_pairwise_accuracy(
        metric[order], human[order], systems[order], items[order], seed=1
    )[0].value
    assert forth == pytest.approx(back)


def test_systems_that_share_no_item_are_no_pair():
    estimate = soft_pairwise_accuracy([1, 2], [1, 2], ["a", "b"], [0, 1], seed=0)[0]
    assert estimate.value is None
    assert "same item" in estimate.reason
