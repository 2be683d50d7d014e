"""How well scores tell positives from negatives, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

RESAMPLES = 2000


@dataclass(frozen=True)
class Shares:
    """Numerators and denominators of a ratio, one of each per dialogue."""

    part: NDArray[Any]
    whole: NDArray[Any]

    def ratio(self) -> float:
        return float(self.part.sum() / self.whole.sum())

    def text(self, other: Shares | None = None) -> str:
        """The ratio with its 95% interval (of the difference to `other`, on the same dialogues)."""
        rows = np.random.default_rng(0).integers(len(self.part), size=(RESAMPLES, len(self.part)))
        value = self.ratio() - (other.ratio() if other else 0.0)
        drawn = self._ratios(rows) - (other._ratios(rows) if other else 0.0)
        low, high = np.quantile(drawn, [0.025, 0.975])
        sign = "+" if other else ""
        return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"

    def _ratios(self, rows: NDArray[Any]) -> NDArray[Any]:
        ratios: NDArray[Any] = self.part[rows].sum(1) / self.whole[rows].sum(1)
        return ratios


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
