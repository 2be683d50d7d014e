"""Answers of yes or no: AUC and balanced accuracy, and how they vary with the clusters drawn.

`scores` and `decisions` are classifiers x items, `labels` say which items are positive.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from causerie.bench.statistics.estimate import Estimate, FloatArray, Labels, label_index
from causerie.bench.statistics.resampling import ClusterStatistic, cluster_sums
from causerie.training.measures import auc, balanced_accuracy

_ONE_KIND = "all items are positive, or none is"


def aucs(scores: ArrayLike, labels: ArrayLike) -> list[Estimate]:
    """Share of (positive, negative) pairs in order, ties half; one estimate per classifier."""
    return _each(scores, labels, auc)


def balanced_accuracies(decisions: ArrayLike, labels: ArrayLike) -> list[Estimate]:
    return _each(decisions, labels, balanced_accuracy)


def auc_of_clusters(scores: ArrayLike, labels: ArrayLike, clusters: Labels) -> ClusterStatistic:
    """AUC; memory grows with the number of positives times that of negatives."""
    index, count = label_index(clusters)
    positive = np.asarray(labels, dtype=bool)
    rows = np.array(scores, dtype=np.float64, ndmin=2)
    where = np.eye(count)[index]
    in_order = []
    for row in rows:
        high, low = row[positive][:, None], row[~positive]
        wins = (high > low) + (high == low) / 2
        in_order.append(where[positive].T @ wins @ where[~positive])
    positives, negatives = where[positive].sum(axis=0), where[~positive].sum(axis=0)

    def share(counts: FloatArray) -> FloatArray:
        pairs = (counts @ positives) * (counts @ negatives)
        won = np.stack([((counts @ matrix) * counts).sum(axis=1) for matrix in in_order], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            result: FloatArray = won / pairs[:, None]
        return result

    return ClusterStatistic(count, share)


def balanced_accuracy_of_clusters(
    decisions: ArrayLike, labels: ArrayLike, clusters: Labels
) -> ClusterStatistic:
    index, count = label_index(clusters)
    positive = np.asarray(labels, dtype=bool)
    said = np.array(decisions, dtype=bool, ndmin=2)
    kinds = cluster_sums(np.array([positive, ~positive], dtype=np.float64), index, count)
    right = [cluster_sums((said & positive).astype(np.float64), index, count)]
    right.append(cluster_sums((~said & ~positive).astype(np.float64), index, count))

    def accuracy(counts: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            of_positives, of_negatives = (
                counts @ rows.T / (counts @ kind)[:, None]
                for rows, kind in zip(right, kinds, strict=True)
            )
        result: FloatArray = (of_positives + of_negatives) / 2
        return result

    return ClusterStatistic(count, accuracy)


def _each(
    rows: ArrayLike, labels: ArrayLike, measure: Callable[[ArrayLike, ArrayLike], float]
) -> list[Estimate]:
    matrix: NDArray[np.generic] = np.array(rows, ndmin=2)
    both = 0 < int(np.sum(labels)) < matrix.shape[1]
    reason = None if both else _ONE_KIND
    return [Estimate.of(measure(row, labels), matrix.shape[1], reason) for row in matrix]
