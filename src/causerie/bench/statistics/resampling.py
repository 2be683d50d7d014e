"""Statistics as functions of how often each cluster was drawn.

Items of one dialogue or context resemble each other, so what is resampled is the cluster,
with all its items. A `ClusterStatistic` has gathered what it needs per cluster once and
then answers for many resamples at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.estimate import (
    FloatArray,
    IntArray,
    Labels,
    as_matrix,
    label_index,
    pairwise_complete,
)
from causerie.bench.statistics.weighted import (
    correlation_of_covariance,
    weighted_covariance,
    weighted_ranks,
)

_BLOCK = 200_000
"""Numbers per temporary array, so that it stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class ClusterStatistic:
    """Call it with counts (resamples x clusters): it gives values (resamples x metrics)."""

    clusters: int
    function: Callable[[FloatArray], FloatArray]

    def __call__(self, counts: FloatArray) -> FloatArray:
        return self.function(counts)


def correlation_of_clusters(
    scores: ArrayLike,
    human: ArrayLike,
    clusters: Labels,
    *,
    ranks: bool = False,
    covariates: ArrayLike | None = None,
) -> ClusterStatistic:
    """Pearson's r, or Spearman's rho with `ranks`; partial if there are covariates.

    Ranks are those within each resample, as if the statistic were computed on it afresh.
    """
    index, count = label_index(clusters)
    x, y = pairwise_complete(scores, human)
    given = as_matrix(covariates) if covariates is not None else np.empty((0, x.shape[1]))
    one_metric = _ranked if ranks else _moments
    parts = []
    for row_x, row_y in zip(x, y, strict=True):
        variables = np.vstack([row_x, row_y, given])
        present = ~np.isnan(variables).any(axis=0)
        parts.append(one_metric(variables[:, present], index[present], count))
    return _side_by_side(count, parts)


def kendall_of_clusters(scores: ArrayLike, human: ArrayLike, clusters: Labels) -> ClusterStatistic:
    """Kendall's tau-b. Memory grows with the square of the number of items or clusters."""
    index, count = label_index(clusters)
    x, y = pairwise_complete(scores, human)

    def one_metric(a: FloatArray, b: FloatArray) -> Callable[[FloatArray], FloatArray]:
        present = ~np.isnan(a)
        sign_a, sign_b = _signs(a[present]), _signs(b[present])
        where = index[present]
        agree = _pair_sums(sign_a * sign_b, where, count)
        untied_a = _pair_sums(np.abs(sign_a), where, count)
        untied_b = _pair_sums(np.abs(sign_b), where, count)

        def tau(counts: FloatArray) -> FloatArray:
            with np.errstate(invalid="ignore", divide="ignore"):
                norm = np.sqrt(_quadratic(counts, untied_a) * _quadratic(counts, untied_b))
                result: FloatArray = _quadratic(counts, agree) / norm
            return result

        return tau

    return _one_by_one(count, lambda row: one_metric(x[row], y[row]), len(x))


def accuracy_of_clusters(
    scores: ArrayLike, human: ArrayLike, clusters: Labels, epsilons: ArrayLike
) -> ClusterStatistic:
    """Pooled pairwise accuracy at the given tie thresholds, one per metric.

    A pair of an item with its own copy in the resample is no pair. Memory grows with the
    square of the number of items.
    """
    index, count = label_index(clusters)
    x, y = pairwise_complete(scores, human)

    def one_metric(
        a: FloatArray, b: FloatArray, epsilon: float
    ) -> Callable[[FloatArray], FloatArray]:
        present = ~np.isnan(a)
        difference = a[present][:, None] - a[present]
        decision = np.where(np.abs(difference) <= epsilon, 0, np.sign(difference)).astype(np.int8)
        right = (decision == _signs(b[present])).astype(np.int8)
        np.fill_diagonal(right, 0)
        right_pairs = _pair_sums(right, index[present], count)
        items = np.bincount(index[present], minlength=count).astype(np.float64)
        # Every pair of different items; a cluster drawn twice pairs its items with the copies.
        all_pairs = np.outer(items, items) - np.diag(items)

        def accuracy(counts: FloatArray) -> FloatArray:
            with np.errstate(invalid="ignore", divide="ignore"):
                result: FloatArray = _quadratic(counts, right_pairs) / _quadratic(counts, all_pairs)
            return result

        return accuracy

    thresholds = np.broadcast_to(np.asarray(epsilons, dtype=np.float64), len(x))
    return _one_by_one(count, lambda row: one_metric(x[row], y[row], thresholds[row]), len(x))


def mean_of_clusters(values: ArrayLike, clusters: Labels) -> ClusterStatistic:
    """Mean over the items that have a value; items may be groups with one statistic each."""
    index, count = label_index(clusters)
    matrix = as_matrix(values)
    present = ~np.isnan(matrix)
    sums = cluster_sums(np.where(present, matrix, 0), index, count)
    items = cluster_sums(present.astype(np.float64), index, count)

    def mean(counts: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: FloatArray = (counts @ sums.T) / (counts @ items.T)
        return result

    return ClusterStatistic(count, mean)


def cluster_sums(rows: FloatArray, index: IntArray, count: int) -> FloatArray:
    """Sums of each row (rows x items) per cluster: rows x clusters."""
    sums = [np.bincount(index, weights=row, minlength=count) for row in rows]
    return np.array(sums, dtype=np.float64).reshape(len(rows), count)


def _side_by_side(
    clusters: int, parts: list[Callable[[FloatArray], FloatArray]]
) -> ClusterStatistic:
    return ClusterStatistic(clusters, lambda counts: np.stack([p(counts) for p in parts], axis=1))


def _one_by_one(
    clusters: int, part: Callable[[int], Callable[[FloatArray], FloatArray]], metrics: int
) -> ClusterStatistic:
    """For parts with large matrices: no more than one is in memory at a time."""
    return ClusterStatistic(
        clusters,
        lambda counts: (
            np.array([part(row)(counts) for row in range(metrics)]).reshape(metrics, len(counts)).T
        ),
    )


def _moments(
    variables: FloatArray, index: IntArray, count: int
) -> Callable[[FloatArray], FloatArray]:
    """Pearson from sums and products per cluster: a resample costs clusters, not items."""
    size, items = variables.shape
    if items == 0:
        return _undefined
    scaled = variables - variables.mean(axis=1, keepdims=True)
    spread = np.abs(scaled).max(axis=1, keepdims=True)
    scaled = scaled / np.where(spread > 0, spread, 1)
    products = (scaled[:, None, :] * scaled[None, :, :]).reshape(size * size, items)
    sums = cluster_sums(np.vstack([np.ones(items), scaled, products]), index, count)

    def correlation(counts: FloatArray) -> FloatArray:
        drawn = counts @ sums.T
        with np.errstate(invalid="ignore", divide="ignore"):
            means = drawn[:, 1 : size + 1] / drawn[:, :1]
        squares = drawn[:, size + 1 :].reshape(-1, size, size)
        covariance = squares - drawn[:, 0, None, None] * means[:, :, None] * means[:, None, :]
        diagonal = np.arange(size)
        # Rounding leaves a little of a variance that is zero.
        noise = covariance[:, diagonal, diagonal] <= 1e-12 * squares[:, diagonal, diagonal]
        covariance[:, diagonal, diagonal] = np.where(noise, 0, covariance[:, diagonal, diagonal])
        return correlation_of_covariance(covariance)

    return correlation


def _ranked(
    variables: FloatArray, index: IntArray, count: int
) -> Callable[[FloatArray], FloatArray]:
    """Spearman from the ranks within each resample."""
    items = variables.shape[1]
    if items == 0:
        return _undefined
    step = max(1, _BLOCK // items)

    def correlation(counts: FloatArray) -> FloatArray:
        values = []
        for start in range(0, len(counts), step):
            weights = counts[start : start + step].T[index]
            ranks = [weighted_ranks(row, weights) for row in variables]
            values.append(correlation_of_covariance(weighted_covariance(ranks, weights)))
        return np.concatenate(values)

    return correlation


def _undefined(counts: FloatArray) -> FloatArray:
    return np.full(len(counts), np.nan)


def _signs(values: FloatArray) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    greater = values[:, None] > values
    return greater.astype(np.int8) - greater.T


def _pair_sums(
    pairs: np.ndarray[tuple[int, int], np.dtype[np.int8]], index: IntArray, count: int
) -> FloatArray:
    """Sum of an items x items matrix within each pair of clusters."""
    order = np.argsort(index, kind="stable")
    present, starts = np.unique(index[order], return_index=True)
    rows = np.add.reduceat(pairs[:, order], starts, axis=1, dtype=np.float64)
    sums = np.zeros((count, count))
    sums[np.ix_(present, present)] = np.add.reduceat(rows[order], starts, axis=0)
    return sums


def _quadratic(counts: FloatArray, matrix: FloatArray) -> FloatArray:
    result: FloatArray = ((counts @ matrix) * counts).sum(axis=1)
    return result
