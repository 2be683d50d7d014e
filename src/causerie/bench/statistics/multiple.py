"""Many tests at once: correction of p-values, and ranks that respect them."""

from __future__ import annotations

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


def rank_clusters(values: ArrayLike, p: FloatArray, level: float = 0.05) -> list[int | None]:
    """Ranks 1, 2, ... in which no metric is significantly better than another of its rank.

    Down the metrics from the largest value, a new rank begins with the first metric that
    differs significantly (p <= level) from any in the current rank, as in the WMT metrics
    tasks. `p` is a symmetric matrix of pairs, as a rule after `holm`. NaN in it is no
    difference; a metric without a value (NaN) has no rank.
    """
    measured = np.asarray(values, dtype=np.float64)
    order = [m for m in np.argsort(-measured, kind="stable").tolist() if np.isfinite(measured[m])]
    ranks: list[int | None] = [None] * len(measured)
    rank = 1
    members: list[int] = []
    for metric in order:
        if any(p[metric, member] <= level for member in members):
            rank += 1
            members = []
        members.append(metric)
        ranks[metric] = rank
    return ranks
