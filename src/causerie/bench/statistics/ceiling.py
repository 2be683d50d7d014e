"""How well a person would do in the metrics' place: the ceiling beside every table.

Ratings are items x raters (or items x slots), NaN where there is none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.correlation import Correlation
from causerie.bench.statistics.estimate import Estimate, FloatArray, Seed, as_matrix
from causerie.bench.statistics.weighted import (
    correlation_of_covariance,
    weighted_covariance,
    weighted_ranks,
)

_NO_ITEM = "no item has two ratings"


def leave_one_out_ratings(ratings: ArrayLike, *, ranks: bool = False) -> Estimate:
    """Correlation of one rating with the mean of the item's others; raters are anonymous.

    Where a list's slots are not persons, a correlation per slot would depend on the order of
    the lists (sorted ones would even do wonders). So each rating of an item is set against
    the mean of its others, all these points enter one correlation (Pearson, or Spearman with
    `ranks`), and an item's points share its weight of 1: the order within lists has no
    influence, lists may differ in length, and items with a single rating do not count. n is
    the number of items.
    """
    values = np.sort(as_matrix(ratings), axis=1)  # so that equal lists have equal sums
    others = _mean_of_others(values)
    usable = ~np.isnan(others)
    n = int(usable.any(axis=1).sum())
    if n < 2:
        return Estimate(None, n, reason="only one item has two ratings" if n else _NO_ITEM)
    weight = np.broadcast_to(1 / np.maximum(usable.sum(axis=1, keepdims=True), 1), values.shape)
    weights = weight[usable][:, None]
    points = [values[usable], others[usable]]
    if any(np.ptp(row) == 0 for row in points):
        return Estimate(None, n, reason="the ratings are all equal")
    columns = [weighted_ranks(row, weights) if ranks else row[:, None] for row in points]
    return Estimate(float(correlation_of_covariance(weighted_covariance(columns, weights))[0]), n)


def split_half(
    correlation: Correlation, ratings: ArrayLike, *, splits: int = 100, seed: Seed
) -> Estimate:
    """Reliability of the mean rating: correlation of two random halves, stepped up.

    Each item's ratings are split at random into halves (of an odd number one is left out),
    the halves' means are correlated, and Spearman-Brown's 2r / (1 + r) gives the value for
    the full number of ratings; mean over `splits`. Its square root is about the most any
    metric can correlate with the mean rating. n is the number of items with two ratings.
    """
    values = as_matrix(ratings)
    values = values[(~np.isnan(values)).sum(axis=1) >= 2]
    if len(values) == 0:
        return Estimate(None, 0, reason=_NO_ITEM)
    generator = np.random.default_rng(seed)
    half = (~np.isnan(values)).sum(axis=1, keepdims=True) // 2
    place = np.arange(values.shape[1])
    found: list[float] = []
    reason: str | None = None
    for _ in range(splits):
        keys = np.where(np.isnan(values), np.inf, generator.random(values.shape))
        shuffled = np.take_along_axis(np.nan_to_num(values), np.argsort(keys, axis=1), axis=1)
        one = (shuffled * (place < half)).sum(axis=1) / half[:, 0]
        other = (shuffled * ((place >= half) & (place < 2 * half))).sum(axis=1) / half[:, 0]
        estimate = correlation(one, other)[0]
        reason = reason or estimate.reason
        if estimate.value is not None and estimate.value > -1:
            found.append(2 * estimate.value / (1 + estimate.value))
    if not found:
        return Estimate(None, len(values), reason=reason or "the halves contradict each other")
    return Estimate(float(np.mean(found)), len(values))


def _mean_of_others(values: FloatArray) -> FloatArray:
    """For each rating the mean of the item's other ratings; NaN without a rating or others."""
    result = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        # Summed afresh: subtracting from the total would break ties by rounding.
        others = np.delete(values, column, axis=1)
        count = (~np.isnan(others)).sum(axis=1)
        mean = np.nansum(others, axis=1) / np.maximum(count, 1)
        result[:, column] = np.where((count > 0) & ~np.isnan(values[:, column]), mean, np.nan)
    return result
