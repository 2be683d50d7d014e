"""Many tests at once: correction of p-values, and ranks that respect them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.estimate import FloatArray


def holm(p: ArrayLike) -> FloatArray:
    """Holm's correction: p-values to compare with the level wanted for the whole family.

    Takes a list of p-values, or a symmetric matrix of pairs in which a pair counts once. NaN
    is no test and stays NaN.
    """
    given = np.asarray(p, dtype=np.float64)
    if given.ndim == 2:
        upper = np.triu_indices(len(given), 1)
        adjusted = np.full(given.shape, np.nan)
        adjusted[upper] = adjusted.T[upper] = holm(given[upper])
        return adjusted
    result = np.full(given.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(given))
    order = tests[np.argsort(given[tests], kind="stable")]
    steps = given[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(1, np.maximum.accumulate(steps))
    return result


def permutations_for(tests: int, level: float) -> int:
    """How many permutations each of so many tests takes to be significant after `holm`.

    The smallest p a permutation test can give is 1 / (permutations + 1), and Holm multiplies
    it by the number of tests: with these many it still comes out at half the level.
    """
    return math.ceil(2 * tests / level)


def rank_clusters(values: ArrayLike, wins: ArrayLike) -> list[int | None]:
    """Ranks 1, 2, ... in which no metric is significantly better than one below it.

    Down the metrics from the largest value, a new rank begins with the first metric against
    which any in the current rank wins, as in the WMT metrics tasks. `wins` is metrics x
    metrics: whether the row is significantly better than the column. A win of the lower one
    opens no rank: two metrics are tested on the items both scored, where the order can be
    another. A metric without a value (NaN) has no rank.
    """
    measured, better = np.asarray(values, dtype=np.float64), np.asarray(wins, dtype=bool)
    order = [m for m in np.argsort(-measured, kind="stable").tolist() if np.isfinite(measured[m])]
    ranks: list[int | None] = [None] * len(measured)
    rank = 1
    members: list[int] = []
    for metric in order:
        if any(better[member, metric] for member in members):
            rank += 1
            members = []
        members.append(metric)
        ranks[metric] = rank
    return ranks
