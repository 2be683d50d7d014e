"""Ranking the true candidate: does it score best among several?

The false candidates may be random responses, the corrupted twin of an answer, or the reactions of
other users; in every case an item is the scores of its candidates, the true one first, and higher
is better. Items of one dialogue belong together, so intervals are clustered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.estimate import Estimate, FloatArray, Labels, Seed, means
from causerie.stats.resampling import mean_of_clusters, with_intervals

_UNSCORED = "no true response has a score"
_NO_PAIR = "no pair has a score on both sides"


@dataclass(frozen=True)
class Ranking:
    """How well the true candidates are found."""

    recall: Estimate
    """R@1: share of items whose true candidate scores best."""
    mrr: Estimate
    """Mean reciprocal rank of the true candidate."""
    above: Estimate
    """Share of items whose true candidate scores above one other, ties counting half."""


def rank_of_true(items: Sequence[ArrayLike]) -> FloatArray:
    """Return the rank of each item's true candidate, ties counting against it.

    A true candidate without a score (NaN) has no rank; a false one without a score loses.
    """
    scores = [np.asarray(item, dtype=np.float64) for item in items]
    ranks = np.array([1.0 + (own[1:] >= own[0]).sum() for own in scores], dtype=np.float64)
    ranks[np.isnan([own[0] for own in scores])] = np.nan
    return ranks


def wins(true: ArrayLike, false: ArrayLike) -> FloatArray:
    """Return 1 where the true candidate scores higher, ½ where both tie, and 0 elsewhere.

    Where either has no score the result is NaN.
    """
    above = np.asarray(true, dtype=np.float64) - np.asarray(false, dtype=np.float64)
    won: FloatArray = (np.sign(above) + 1) / 2
    return won


def ranking_estimates(
    items: Sequence[ArrayLike], clusters: Labels, *, resamples: int = 1000, seed: Seed = 0
) -> Ranking:
    """Return R@1, MRR and the share above one other, with intervals by cluster.

    The one other is the first false candidate: candidates come in random order.
    """
    ranks = rank_of_true(items)
    scores = [np.asarray(item, dtype=np.float64) for item in items]
    true = [own[0] for own in scores]
    other = [own[1] if len(own) > 1 else np.nan for own in scores]
    recall = np.where(np.isnan(ranks), np.nan, ranks == 1)
    rows = np.array([recall, 1 / ranks, wins(true, other)], dtype=np.float64)
    estimates = [*means(rows[:2], _UNSCORED), *means(rows[2:], _NO_PAIR)]
    statistic = mean_of_clusters(rows, clusters)
    return Ranking(*with_intervals(estimates, statistic, resamples=resamples, seed=seed))
