"""Pairwise accuracy: of items (acc*, Deutsch et al. 2023) and of systems (SPA).

A pair of items is decided correctly if the metric orders it as people do, ties included. A
continuous metric hardly ever ties, so scores that differ by at most epsilon count as tied,
and epsilon is the value that maximises the metric's accuracy: every metric gets its best
threshold, and none is penalised for its scale.

Soft pairwise accuracy (Thompson et al. 2024) asks whether the metric tells two systems apart
as confidently as people do. For each pair of systems, p is the one-sided p-value that the
first is better, from a paired permutation test on the items both answered; SPA is the mean
over pairs of 1 - |p_human - p_metric|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    Labels,
    Seed,
    label_index,
    pairwise_complete,
)

MOST_PAIRS = 50_000_000
"""Largest number of pairs held in memory (about 40 bytes each): 10,000 pooled items."""


@dataclass(frozen=True, slots=True)
class PairwiseAccuracy:
    """An accuracy (its n is the number of pairs) and the tie threshold that maximises it."""

    estimate: Estimate
    epsilon: float | None


def pairwise_accuracy(
    scores: ArrayLike, human: ArrayLike, groups: Labels | None = None
) -> list[PairwiseAccuracy]:
    """Return the accuracy of each metric at its best epsilon.

    Pooled, every pair of items has the same weight. With `groups` (the context of each item)
    only pairs within a group are compared, and the result is the mean of the groups'
    accuracies, with one epsilon for all of them. Of several equally good thresholds the
    smallest is taken; exactly equal scores are always tied.
    """
    x, y = pairwise_complete(scores, human)
    labels = label_index(groups)[0] if groups is not None else np.zeros(x.shape[1], np.int64)
    return [_calibrated(a, b, labels) for a, b in zip(x, y, strict=True)]


def group_accuracies(
    scores: ArrayLike, human: ArrayLike, groups: Labels, epsilons: ArrayLike
) -> FloatArray:
    """Return metrics x groups: the accuracy in each group at the given threshold of each metric.

    Groups are in order of first appearance; a group without a pair has NaN.
    """
    x, y = pairwise_complete(scores, human)
    labels, count = label_index(groups)
    thresholds = np.broadcast_to(np.asarray(epsilons, dtype=np.float64), len(x))
    rows = []
    for a, b, epsilon in zip(x, y, thresholds, strict=True):
        first, second = _pairs_within(np.where(np.isnan(a), -1, labels))
        difference = a[first] - a[second]
        decision = np.where(np.abs(difference) <= epsilon, 0, np.sign(difference))
        right = decision == np.sign(b[first] - b[second])
        with np.errstate(invalid="ignore"):
            rows.append(
                np.bincount(labels[first], weights=right, minlength=count)
                / np.bincount(labels[first], minlength=count)
            )
    return np.array(rows)


def soft_pairwise_accuracy(
    scores: ArrayLike,
    human: ArrayLike,
    systems: Labels,
    items: Labels,
    *,
    permutations: int = 1000,
    seed: Seed,
) -> list[Estimate]:
    """Return the SPA of each metric; its n is the number of system pairs that share an item.

    `items` names the context each response answers; several responses of one system to one
    item are averaged. A response counts if it has both a score and a judgement. Human and
    metric p-values use the same permutations, which adds no noise to the comparison.
    Permutations that equal the observed difference count half, so that swapping the two
    systems of a pair turns p into 1 - p and leaves SPA unchanged.
    """
    x, y = pairwise_complete(scores, human)
    system, system_count = label_index(systems)
    item, item_count = label_index(items)
    flips = np.random.default_rng(seed).integers(0, 2, (item_count, permutations))
    signs = 1 - 2 * flips.astype(np.float64)
    first, second = np.triu_indices(system_count, 1)
    estimates = []
    for row_x, row_y in zip(x, y, strict=True):
        tables = [_table(row, system, item, system_count, item_count) for row in (row_x, row_y)]
        differences = [table[first] - table[second] for table in tables]
        shared = ~np.isnan(differences[0]).all(axis=1)
        p_metric, p_human = (_p_values(d[shared], signs) for d in differences)
        n = int(shared.sum())
        estimates.append(
            Estimate.of(
                float(np.mean(1 - np.abs(p_human - p_metric))) if n else np.nan,
                n,
                None if n else "no two systems have judged responses to the same item",
            )
        )
    return estimates


def _calibrated(a: FloatArray, b: FloatArray, labels: IntArray) -> PairwiseAccuracy:
    labels = np.where(np.isnan(a), -1, labels)
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    pairs = int((sizes * (sizes - 1) // 2).sum())
    if pairs == 0:
        return _undefined(0, "no two items have both a score and a human judgement")
    if pairs > MOST_PAIRS:
        return _undefined(pairs, f"more than {MOST_PAIRS} pairs: take a sample of the items")
    first, second = _pairs_within(labels)
    difference = a[first] - a[second]
    gap = np.abs(difference)
    truth = np.sign(b[first] - b[second])
    if not truth.any():
        # Epsilon could make any metric perfect by calling everything tied.
        return _undefined(pairs, "the human judgements to compare are all equal")
    # A pair's weight is its share of its group, so that every group counts the same.
    per_group = np.bincount(labels[first])
    weight = 1 / per_group[labels[first]] / np.count_nonzero(per_group)
    # Raising epsilon over a pair's gap turns its decision into "tied": right if people tied,
    # wrong if the order was right.
    gain = weight * ((truth == 0).astype(np.float64) - (np.sign(difference) == truth))
    base = float((weight * (np.sign(difference) == truth)).sum())
    order = np.argsort(gap, kind="stable")
    gap, gains = gap[order], np.cumsum(gain[order])
    last = np.flatnonzero(np.r_[gap[1:] != gap[:-1], True])
    thresholds = np.r_[0.0, gap[last]]
    accuracy = base + np.r_[0.0, gains[last]]
    # Sums of weights carry rounding errors: differences of less than one pair are ties.
    best = int(np.flatnonzero(accuracy >= accuracy.max() - 1e-9 / pairs)[0])
    return PairwiseAccuracy(Estimate(float(accuracy[best]), pairs), float(thresholds[best]))


def _pairs_within(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of items with the same label; items labelled -1 are left out."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    ends = np.searchsorted(labels[order], labels[order], side="right")
    place = np.arange(len(order))
    partners = ends - place - 1
    first = np.repeat(place, partners)
    starts = np.repeat(np.cumsum(partners) - partners, partners)
    second = first + 1 + np.arange(len(first)) - starts
    return order[first], order[second]


def _undefined(pairs: int, reason: str) -> PairwiseAccuracy:
    return PairwiseAccuracy(Estimate(None, pairs, reason=reason), None)


def _table(
    values: FloatArray, system: IntArray, item: IntArray, systems: int, items: int
) -> FloatArray:
    """Return mean values as systems x items, NaN where a system has no response."""
    present = ~np.isnan(values)
    cell = (system * items + item)[present]
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, values[present], systems * items) / np.bincount(
            cell, minlength=systems * items
        )
    return mean.reshape(systems, items)


def _p_values(differences: FloatArray, signs: FloatArray) -> FloatArray:
    filled = np.nan_to_num(differences)
    observed = filled.sum(axis=1, keepdims=True)
    permuted = filled @ signs
    # Equal sums differ by rounding errors, which grow with the size of the summands.
    close = 1e-12 * np.abs(filled).sum(axis=1, keepdims=True)
    larger = permuted > observed + close
    equal = np.abs(permuted - observed) <= close
    p: FloatArray = (larger + 0.5 * equal).mean(axis=1)
    return p
