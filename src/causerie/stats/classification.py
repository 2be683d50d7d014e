"""Binary decisions: AUC and balanced accuracy, and both as statistics of resampled clusters.

`labels` says which items are positive. The functions of clusters take `scores` and `decisions`
as classifiers x items.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.correlation import row_ranks
from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    Labels,
    Seed,
    cluster_sums,
    label_index,
)
from causerie.stats.resampling import ClusterStatistic, with_intervals

_ONE_KIND = "no positive and negative to compare"


def auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of (positive, negative) pairs in which the positive scores higher.

    Ties count half; nan if there are no positives or no negatives.
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    return win_share(values[positive], values[~positive])


def win_share(a: ArrayLike, b: ArrayLike) -> float:
    """Return the share of pairs (one of a, one of b) that a wins, ties half: Mann-Whitney's U.

    The share is nan if either side is empty.
    """
    count, others = len(np.asarray(a)), len(np.asarray(b))
    if not (count and others):
        return float("nan")
    ranks = row_ranks(np.concatenate([a, b], dtype=np.float64)[None])[0]
    return float((ranks[:count].sum() - count * (count + 1) / 2) / (count * others))


def balanced_accuracy(decisions: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of sensitivity and specificity; nan without positives or negatives."""
    said, positive = np.asarray(decisions, dtype=bool), np.asarray(labels, dtype=bool)
    if positive.all() or not positive.any():
        return float("nan")
    return float((said[positive].mean() + (~said[~positive]).mean()) / 2)


def auc_of_clusters(
    scores: ArrayLike, labels: ArrayLike, clusters: Labels, strata: Labels | None = None
) -> ClusterStatistic:
    """Return the AUC as a statistic of clusters, ties counting half.

    With `strata`, only pairs within a stratum count. Memory grows with the number of pairs.
    """
    index, count = label_index(clusters)
    positive = np.asarray(labels, dtype=bool)
    rows = np.array(scores, dtype=np.float64, ndmin=2)
    where = np.eye(count)[index]
    stratum = np.zeros(len(index)) if strata is None else label_index(strata)[0]
    pairs = (stratum[positive][:, None] == stratum[~positive]).astype(np.float64)

    def by_cluster(of_pairs: FloatArray) -> FloatArray:
        result: FloatArray = where[positive].T @ of_pairs @ where[~positive]
        return result

    def wins(row: FloatArray) -> FloatArray:
        high, low = row[positive][:, None], row[~positive]
        return by_cluster(((high > low) + (high == low) / 2) * pairs)

    won, all_of_them = [wins(row) for row in rows], by_cluster(pairs)

    def share(counts: FloatArray) -> FloatArray:
        sums = [((counts @ m) * counts).sum(axis=1) for m in (*won, all_of_them)]
        with np.errstate(invalid="ignore", divide="ignore"):
            result: FloatArray = np.stack(sums[:-1], axis=1) / sums[-1][:, None]
        return result

    return ClusterStatistic(count, share)


def balanced_accuracy_of_clusters(
    decisions: ArrayLike, labels: ArrayLike, clusters: Labels
) -> ClusterStatistic:
    """Return the mean of sensitivity and specificity as a statistic of clusters."""
    index, count = label_index(clusters)
    positive = np.asarray(labels, dtype=bool)
    said = np.array(decisions, dtype=bool, ndmin=2)
    kinds = cluster_sums(np.array([positive, ~positive], dtype=np.float64), index, count)
    right = [
        cluster_sums(both.astype(np.float64), index, count)
        for both in (said & positive, ~said & ~positive)
    ]

    def accuracy(counts: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            of_positives, of_negatives = (
                counts @ rows.T / (counts @ kind)[:, None]
                for rows, kind in zip(right, kinds, strict=True)
            )
        result: FloatArray = (of_positives + of_negatives) / 2
        return result

    return ClusterStatistic(count, accuracy)


def estimates_of(
    statistic: ClusterStatistic, items: int, *, resamples: int = 1000, seed: Seed
) -> list[Estimate]:
    """Return the statistic with every cluster drawn once, with intervals, per classifier."""
    values = statistic(np.ones((1, statistic.clusters)))[0]
    estimates = [
        Estimate.of(value, items, _ONE_KIND if np.isnan(value) else None) for value in values
    ]
    return with_intervals(estimates, statistic, resamples=resamples, seed=seed)
