"""Two systems compared on many metrics: difference of means, interval, p-value, win rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.classification import win_share
from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    Labels,
    Seed,
    as_matrix,
    cluster_sums,
    label_index,
    means,
)
from causerie.stats.resampling import (
    draw_counts,
    mean_of_clusters,
    widened_tail,
    with_intervals,
)

_BLOCK = 1000
_NONE_SHARED = "no item has a score of both systems"
_FEW = "a comparison takes two dialogues with a score on each side"


@dataclass(frozen=True, slots=True)
class Comparison:
    """System a against system b on one metric."""

    difference: Estimate
    """Mean of a minus mean of b."""
    p: float | None
    """Two-sided p-value of no difference; None where the difference has no value."""
    win_rate: Estimate
    """Share of comparisons that a wins, ties counting half."""


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Labels,
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: Seed,
) -> list[Comparison]:
    """Compare systems that answered the same items: `a` and `b` are metrics x items, in one order.

    Items without a score on both sides do not count. The p-value is from a permutation test that
    swaps the systems in whole clusters; the win rate is the share of items on which a is higher.
    """
    x, y = as_matrix(a), as_matrix(b)
    if x.shape != y.shape:
        raise ValueError(f"paired scores must have one shape, not {x.shape} and {y.shape}")
    generator = np.random.default_rng(seed)
    differences = x - y
    wins = np.where(np.isnan(differences), np.nan, (np.sign(differences) + 1) / 2)
    difference, win_rate = (
        with_intervals(
            means(values, _NONE_SHARED),
            mean_of_clusters(values, clusters),
            level=level,
            resamples=resamples,
            seed=generator,
        )
        for values in (differences, wins)
    )
    index, count = label_index(clusters)
    sums = cluster_sums(np.nan_to_num(differences), index, count)
    p = _p_sign_flips(sums, permutations, generator)
    return [
        Comparison(d, float(q) if d.value is not None else None, w)
        for d, q, w in zip(difference, p, win_rate, strict=True)
    ]


def compare_unpaired(
    a: ArrayLike,
    clusters_a: Labels,
    b: ArrayLike,
    clusters_b: Labels,
    *,
    resamples: int = 1000,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: Seed,
) -> list[Comparison]:
    """Compare systems with different conversations: `a` and `b` are metrics x their own items.

    The interval resamples dialogues within each system. The p-value shuffles them between the
    systems and compares the difference over its standard error (clustered by dialogue, each side
    with its own, as Welch's t), so that unequal spread or numbers of dialogues do not pass for a
    difference of means. The win rate is how often an item of a scores higher than an item of b,
    over all such pairs; it has no interval.
    """
    x, y = as_matrix(a), as_matrix(b)
    index_a, index_b = label_index(clusters_a)[0], label_index(clusters_b)[0]
    generator = np.random.default_rng(seed)
    result = []
    for own, other in zip(x, y, strict=True):
        in_a, in_b = ~np.isnan(own), ~np.isnan(other)
        n = int(in_a.sum() + in_b.sum())
        sides = _dialogues(own[in_a], index_a[in_a]), _dialogues(other[in_b], index_b[in_b])
        fewest = min(side.shape[1] for side in sides)
        if fewest < 2:
            none = Estimate(None, n, reason=_FEW)
            result.append(Comparison(none, None, none))
            continue
        drawn = [_resampled_means(side, resamples, generator) for side in sides]
        tail = widened_tail(level, fewest)
        low, high = np.quantile(drawn[0] - drawn[1], [tail, 1 - tail])
        difference = float(own[in_a].mean() - other[in_b].mean())
        result.append(
            Comparison(
                Estimate(difference, n, float(low), float(high)),
                _p_shuffles(*sides, permutations, generator),
                Estimate(win_share(own[in_a], other[in_b]), n),
            )
        )
    return result


def _p_sign_flips(
    sums: FloatArray, permutations: int, generator: np.random.Generator
) -> FloatArray:
    observed = np.abs(sums.sum(axis=1)) - 1e-12 * np.abs(sums).sum(axis=1)
    reached = np.zeros(len(sums))
    for start in range(0, permutations, _BLOCK):
        size = min(_BLOCK, permutations - start)
        signs = generator.integers(0, 2, (size, sums.shape[1]), dtype=np.int8) * 2.0 - 1
        reached += (np.abs(signs @ sums.T) >= observed).sum(axis=0)
    return (reached + 1) / (permutations + 1)


def _dialogues(values: FloatArray, index: IntArray) -> FloatArray:
    """Return 2 x dialogues, sums and numbers of scores, without dialogues that have none."""
    _, index = np.unique(index, return_inverse=True)
    count = int(index.max(initial=-1)) + 1
    return cluster_sums(np.vstack([values, np.ones(len(values))]), index, count)


def _resampled_means(
    side: FloatArray, resamples: int, generator: np.random.Generator
) -> FloatArray:
    drawn = draw_counts(side.shape[1], resamples, generator) @ side.T
    means: FloatArray = drawn[:, 0] / drawn[:, 1]
    return means


def _p_shuffles(
    a: FloatArray, b: FloatArray, permutations: int, generator: np.random.Generator
) -> float:
    """Return the share of shuffled dialogues whose studentised difference reaches the observed."""
    both = np.hstack([a, b])
    sums, counts = both
    # Scores are centred and divided by their spread, which keeps the squares accurate.
    sums = sums - counts * sums.sum() / counts.sum()
    sums = sums / (np.abs(sums).max() or 1)
    features = np.vstack([sums, counts, sums**2, sums * counts, counts**2])
    labels = np.arange(both.shape[1]) < a.shape[1]
    observed = _welch(labels[None].astype(np.float64), features)[0]
    reached = 0
    for start in range(0, permutations, _BLOCK):
        size = min(_BLOCK, permutations - start)
        shuffled = generator.permuted(np.tile(labels, (size, 1)), axis=1).astype(np.float64)
        reached += int((_welch(shuffled, features) >= observed * (1 - 1e-9)).sum())
    return (reached + 1) / (permutations + 1)


def _welch(labels: FloatArray, features: FloatArray) -> FloatArray:
    """Return |difference of means| / its standard error per row of labels (1: dialogue of a)."""
    means, variances = [], []
    for side in (labels, 1 - labels):
        total, items, squares, products, items_squared = (side @ features.T).T
        dialogues = side.sum(axis=1)
        mean = total / items
        left = squares - 2 * mean * products + mean**2 * items_squared
        means.append(mean)
        variances.append(np.maximum(left, 0) / items**2 * dialogues / (dialogues - 1))
    gap = np.abs(means[0] - means[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = gap / np.sqrt(variances[0] + variances[1])
    return np.where(gap <= 1e-12, 0, ratio)
