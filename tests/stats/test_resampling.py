"""Resampled statistics equal the statistic of the resample; intervals cover the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.stats import (
    ClusteredRatio,
    Estimate,
    accuracy_of_clusters,
    correlation_of_clusters,
    kendall,
    kendall_of_clusters,
    mean_of_clusters,
    partial,
    pearson,
    spearman,
    with_intervals,
)
from causerie.stats.resampling import draw_counts, widened_tail

seeds = st.integers(0, 100_000)


def make_data(seed, items=24, clusters=7):
    """Two metrics with ties and a hole, a judgement, a covariate, cluster labels, a draw."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(items) % clusters)
    human = rng.integers(1, 5, items).astype(float)
    scores = np.stack([human + rng.integers(0, 4, items), rng.standard_normal(items)])
    scores[1, rng.integers(items)] = math.nan
    length = rng.integers(1, 30, items).astype(float)
    counts = draw_counts(clusters, 3, rng)
    # Labels are counted in order of first appearance.
    _, first = np.unique(labels, return_index=True)
    order = labels[np.sort(first)]
    return scores, human, length, labels, counts, order


def resample(counts, order, labels):
    """Items of a resample: every cluster repeated as often as it was drawn."""
    drawn = np.repeat(order, counts.astype(int))
    return np.concatenate([np.flatnonzero(labels == cluster) for cluster in drawn])


@pytest.mark.parametrize(
    ("direct", "of_clusters"),
    [
        (lambda x, h, z: pearson(x, h), lambda x, h, z, c: correlation_of_clusters(x, h, c)),
        (
            lambda x, h, z: spearman(x, h),
            lambda x, h, z, c: correlation_of_clusters(x, h, c, ranks=True),
        ),
        (lambda x, h, z: kendall(x, h), lambda x, h, z, c: kendall_of_clusters(x, h, c)),
        (partial, lambda x, h, z, c: correlation_of_clusters(x, h, c, covariates=z)),
        (
            lambda x, h, z: partial(x, h, z, ranks=True),
            lambda x, h, z, c: correlation_of_clusters(x, h, c, covariates=z, ranks=True),
        ),
    ],
    ids=["pearson", "spearman", "kendall", "partial", "partial-spearman"],
)
@settings(max_examples=40)
@given(seed=seeds)
def test_counts_give_the_statistic_of_the_resample(direct, of_clusters, seed):
    scores, human, length, labels, counts, order = make_data(seed)
    found = of_clusters(scores, human, length, labels)(counts)
    assert found.shape == (3, 2)
    for row, drawn in zip(found, counts, strict=True):
        items = resample(drawn, order, labels)
        for value, estimate in zip(
            row, direct(scores[:, items], human[items], length[items]), strict=True
        ):
            if estimate.value is None:
                assert math.isnan(value)
            else:
                assert value == pytest.approx(estimate.value, abs=1e-8)


@settings(max_examples=40)
@given(seed=seeds, epsilon=st.sampled_from([0.0, 0.5, 1.0]))
def test_accuracy_of_the_resample_without_pairs_of_an_item_with_itself(seed, epsilon):
    scores, human, _, labels, counts, order = make_data(seed)
    found = accuracy_of_clusters(scores, human, labels, epsilon)(counts)
    for row, drawn in zip(found, counts, strict=True):
        items = resample(drawn, order, labels)
        for value, scored in zip(row, scores, strict=True):
            own = [i for i in items if scored[i] == scored[i]]
            right = [
                (0 if abs(scored[i] - scored[j]) <= epsilon else np.sign(scored[i] - scored[j]))
                == np.sign(human[i] - human[j])
                for i in own
                for j in own
                if i != j
            ]
            assert value == pytest.approx(np.mean(right))


def test_degenerate_resamples_are_undefined_not_wrong():
    labels = [0, 0, 1, 1]
    scores, human = [[0.1, 0.1, 0.7, 0.9]], [1.0, 2.0, 3.0, 5.0]
    only_first = np.array([[2.0, 0.0]])
    for ranks in (False, True):
        statistic = correlation_of_clusters(scores, human, labels, ranks=ranks)
        assert np.isnan(statistic(only_first)).all()
    assert np.isnan(kendall_of_clusters(scores, human, labels)(only_first)).all()
    nothing = correlation_of_clusters([[math.nan] * 4], human, labels)
    assert np.isnan(nothing(only_first)).all()


def test_mean_of_clusters_weighs_items_not_clusters():
    statistic = mean_of_clusters([[1.0, 2.0, 3.0, math.nan]], ["a", "b", "b", "c"])
    assert statistic(np.array([[1, 1, 1], [2, 1, 0], [0, 0, 3]]))[:2, 0].tolist() == [2.0, 7 / 4]
    assert np.isnan(statistic(np.array([[0.0, 0, 3]])))


def test_draws_are_seeded_and_have_the_right_size():
    counts = draw_counts(5, 200, 3)
    assert (counts == draw_counts(5, 200, 3)).all()
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.2)


def test_few_clusters_widen_the_interval():
    tails = [widened_tail(0.95, clusters) for clusters in (3, 10, 100, 100_000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, abs=1e-5)


def test_no_interval_has_a_reason():
    rng = np.random.default_rng(0)
    scores, human = rng.standard_normal((1, 10)), rng.standard_normal(10)
    one_cluster = correlation_of_clusters(scores, human, ["a"] * 10)
    estimate = with_intervals(pearson(scores, human), one_cluster, seed=0)[0]
    assert estimate.value is not None
    assert estimate.low is None
    assert "two dialogues" in estimate.reason
    constant = with_intervals(
        pearson([1.0] * 10, human), correlation_of_clusters([1.0] * 10, human, range(10)), seed=0
    )[0]
    assert constant == Estimate(None, 10, reason="the metric gives every item the same score")


def simulate(rng, clusters, ratings):
    """About 4.5 items per cluster, correlated within it; judgements are 1-5 if `ratings`."""
    labels = np.repeat(np.arange(clusters), rng.integers(3, 7, clusters))
    shared, own = rng.standard_normal((2, clusters)), rng.standard_normal((2, len(labels)))
    metric, noise = math.sqrt(0.3) * shared[:, labels] + math.sqrt(0.7) * own
    human = 0.5 * metric + math.sqrt(0.75) * noise
    return metric, np.digitize(human, [-1.2, -0.3, 0.4, 1.3]) if ratings else human, labels


def coverage(runs, ranks, ratings):
    """Return the share of 95% intervals at about 300 items that contain the true value."""
    rng = np.random.default_rng(20)
    correlation = spearman if ranks else pearson
    truth = correlation(*simulate(rng, 200_000, ratings)[:2])[0].value
    hits = 0
    for _ in range(runs):
        metric, human, labels = simulate(rng, 66, ratings)
        statistic = correlation_of_clusters(metric, human, labels, ranks=ranks)
        estimate = with_intervals(correlation(metric, human), statistic, seed=rng)[0]
        hits += estimate.low <= truth <= estimate.high
    return hits / runs


@pytest.mark.parametrize("ranks", [False, True], ids=["pearson", "spearman"])
def test_intervals_cover_roughly(ranks):
    assert 0.88 <= coverage(100, ranks, ratings=True) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("ratings", [False, True], ids=["normal", "ratings"])
@pytest.mark.parametrize("ranks", [False, True], ids=["pearson", "spearman"])
def test_intervals_cover_within_two_points(ranks, ratings):
    assert coverage(2000, ranks, ratings) == pytest.approx(0.95, abs=0.02)


def test_ignoring_clusters_would_be_too_narrow():
    """The reason for clusters: with copies of items, item-wise intervals shrink, these do not."""
    rng = np.random.default_rng(1)
    metric = np.repeat(rng.standard_normal(50), 6)
    human = np.repeat(rng.standard_normal(50), 6)
    widths = []
    for labels in (np.arange(300) // 6, np.arange(300)):
        statistic = correlation_of_clusters(metric, human, labels)
        estimate = with_intervals(pearson(metric, human), statistic, seed=2)[0]
        widths.append(estimate.high - estimate.low)
    assert widths[0] > 2 * widths[1]


def test_ratios_have_paired_intervals() -> None:
    rng = np.random.default_rng(1)
    whole = rng.integers(50, 150, 200).astype(float)
    part = whole * rng.normal(1.0, 0.2, 200)
    one, other = ClusteredRatio(part, whole), ClusteredRatio(part + 0.1 * whole, whole)
    assert one.ratio() == pytest.approx(part.sum() / whole.sum())
    value, low, high = (float(x.strip("[],")) for x in one.text().split())
    assert low < value < high
    assert high - low == pytest.approx(2 * 1.96 * 0.2 / np.sqrt(200), rel=0.3)
    assert other.text(one) == "+0.100 [+0.100, +0.100]"
