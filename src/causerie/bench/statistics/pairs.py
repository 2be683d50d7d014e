"""Pairwise accuracy with tie calibration (acc*, Deutsch et al. 2023).

A pair of items is judged right if the metric orders it as people do, ties included. A
continuous metric hardly ever ties, so scores that differ by at most epsilon count as tied,
and epsilon is the value that makes the metric's accuracy largest: every metric is given its
best threshold, none is punished for its scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    Labels,
    label_index,
    pairwise_complete,
)

MOST_PAIRS = 50_000_000
"""All pairs are held in memory (about 40 bytes each): 10,000 items pooled are the most."""


@dataclass(frozen=True, slots=True)
class PairwiseAccuracy:
    """The accuracy (its n is the number of pairs) and the tie threshold that gives it."""

    estimate: Estimate
    epsilon: float | None


def pairwise_accuracy(
    scores: ArrayLike, human: ArrayLike, groups: Labels | None = None
) -> list[PairwiseAccuracy]:
    """Accuracy of each metric at its best epsilon.

    Pooled, every pair of items counts the same. With `groups` (the context of each item)
    only pairs within a group are made, and the result is the mean of the groups' accuracies,
    with one epsilon for all of them. Among thresholds that do equally well the smallest is
    taken; scores that are exactly equal are always tied.
    """
    x, y = pairwise_complete(scores, human)
    labels = label_index(groups)[0] if groups is not None else np.zeros(x.shape[1], np.int64)
    return [_calibrated(a, b, labels) for a, b in zip(x, y, strict=True)]


def group_accuracies(
    scores: ArrayLike, human: ArrayLike, groups: Labels, epsilons: ArrayLike
) -> FloatArray:
    """Metrics x groups: accuracy in each group at the given thresholds (one per metric).

    Groups are in order of first appearance; NaN where a group has no pair.
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


def _calibrated(a: FloatArray, b: FloatArray, labels: IntArray) -> PairwiseAccuracy:
    labels = np.where(np.isnan(a), -1, labels)
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    pairs = int((sizes * (sizes - 1) // 2).sum())
    if pairs == 0:
        return _none(0, "no two items have both a score and a human judgement")
    if pairs > MOST_PAIRS:
        return _none(pairs, f"more than {MOST_PAIRS} pairs: take a sample of the items")
    first, second = _pairs_within(labels)
    difference = a[first] - a[second]
    gap = np.abs(difference)
    truth = np.sign(b[first] - b[second])
    if not truth.any():
        # Epsilon could make any metric perfect by calling everything tied.
        return _none(pairs, "the human judgements to compare are all equal")
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
    # Sums of weights carry rounding: what differs by less than one pair is equal.
    best = int(np.flatnonzero(accuracy >= accuracy.max() - 1e-9 / pairs)[0])
    return PairwiseAccuracy(Estimate(float(accuracy[best]), pairs), float(thresholds[best]))


def _pairs_within(labels: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of items with the same label; items labelled -1 are left out."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    ends = np.searchsorted(labels[order], labels[order], side="right")
    place = np.arange(len(order))
    partners = ends - place - 1
    first = np.repeat(place, partners)
    starts = np.repeat(np.cumsum(partners) - partners, partners)
    second = first + 1 + np.arange(len(first)) - starts
    return order[first], order[second]


def _none(pairs: int, reason: str) -> PairwiseAccuracy:
    return PairwiseAccuracy(Estimate(None, pairs, reason=reason), None)
