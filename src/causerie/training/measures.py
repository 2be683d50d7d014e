"""How well scores tell positives from negatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


def auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Share of (positive, negative) pairs in which the positive scores higher, ties half.

    nan where one kind is missing.
    """
    ranks = stats.rankdata(np.asarray(scores, dtype=np.float64))
    positive = np.asarray(labels, dtype=bool)
    count, others = int(positive.sum()), int((~positive).sum())
    if not (count and others):
        return float("nan")
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))


def balanced_accuracy(decisions: ArrayLike, labels: ArrayLike) -> float:
    """Mean of the shares of positives and of negatives that are decided rightly; nan likewise."""
    said, positive = np.asarray(decisions, dtype=bool), np.asarray(labels, dtype=bool)
    if positive.all() or not positive.any():
        return float("nan")
    return float((said[positive].mean() + (~said[~positive]).mean()) / 2)
