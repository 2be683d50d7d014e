"""True against false: does the true one of several candidates score best?

Whatever the experiment (a human response among random ones, an answer and its corrupted twin, a
user's real reaction among other users'), an item is the scores of its candidates, the true one's
first and higher is better. Items of one dialogue belong together, so intervals are clustered.
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
    """How well the true ones are found."""

    recall: Estimate
    """R@1: share of items whose true candidate scores best."""
    mrr: Estimate
    """Mean of 1 / the rank of the true one."""
    above: Estimate
    """Share of true ones above one other, ties counting half."""


def rank_of_true(items: Sequence[ArrayLike]) -> FloatArray:
    """Return the rank of each item's true candidate, ties against it.

    A true one without a score (NaN) has no rank; another one without a score loses.
    """
    scores = [np.asarray(item, dtype=np.float64) for item in items]
    ranks = np.array([1.0 + (own[1:] >= own[0]).sum() for own in scores], dtype=np.float64)
    ranks[np.isnan([own[0] for own in scores])] = np.nan
    return ranks


def wins(true: ArrayLike, false: ArrayLike) -> FloatArray:
    """Return 1 where the true one scores higher, ½ where both score the same, else 0.

    NaN where one of the two has no score.
    """
    above = np.asarray(true, dtype=np.float64) - np.asarray(false, dtype=np.float64)
    won: FloatArray = (np.sign(above) + 1) / 2
    return won


def ranking_estimates(
    items: Sequence[ArrayLike], clusters: Labels, *, resamples: int = 1000, seed: Seed = 0
) -> Ranking:
    """Return R@1, MRR and the share above one other, with intervals by cluster.

    The one other is the first after the true one: candidates come in random order.
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
