"""Means of millions of items, clustered by dialogue, from six sums that a database can compute.

Where resampling every dialogue a thousand times would take minutes, linearisation answers the
same question: the mean is a ratio of two sums over dialogues, its standard error is that of the
dialogues' residuals, and the interval uses Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from causerie.stats.estimate import Estimate, Labels, cluster_sums, label_index

_FEW = "an interval takes at least two dialogues"


@dataclass(frozen=True, slots=True)
class ClusterMoments:
    """Sums over dialogues of n (items), s (sum of values minus `shift`), and of their products."""

    clusters: int
    n: float
    """Number of items: the sum of n over all dialogues."""
    s: float
    ss: float
    sn: float
    nn: float
    shift: float = 0.0
    """A number near the mean, subtracted so that squares keep their digits."""

    @classmethod
    def of(cls, values: ArrayLike, dialogues: Labels) -> ClusterMoments:
        """Return the moments of values in memory, none of which may be missing."""
        numbers = np.asarray(values, np.float64)
        shift = float(numbers.mean()) if len(numbers) else 0.0
        index, count = label_index(dialogues)
        n, s = cluster_sums(np.vstack([np.ones(len(numbers)), numbers - shift]), index, count)
        return cls.of_sums(count, [x.sum() for x in (n, s, s * s, s * n, n * n)], shift)

    @classmethod
    def of_sums(cls, clusters: int, sums: Sequence[float | None], shift: float) -> ClusterMoments:
        """Return the moments of n, s, ss, sn and nn from a database, where None is an empty sum."""
        n, s, ss, sn, nn = (float(x or 0) for x in sums)
        return cls(clusters, n, s, ss, sn, nn, shift)

    @property
    def mean(self) -> float:
        return self.shift + self.s / self.n if self.n else math.nan

    @property
    def variance(self) -> float:
        """The variance of the mean; NaN for fewer than two dialogues."""
        if self.clusters < 2 or not self.n:
            return math.nan
        mean = self.s / self.n
        residuals = self.ss - 2 * mean * self.sn + mean**2 * self.nn
        return max(residuals, 0.0) / self.n**2 * self.clusters / (self.clusters - 1)

    def estimate(self, level: float = 0.95) -> Estimate:
        """Return the mean with its interval."""
        if not self.n:
            return Estimate(None, 0, reason="nothing is scored")
        return _estimate(self.mean, int(self.n), self.variance, self.clusters - 1, level)

    def p(self) -> float | None:
        """Return the two-sided p-value of a mean of zero (of paired differences: of none)."""
        return _p(self.mean, self.variance, self.clusters - 1)


def difference(
    a: ClusterMoments, b: ClusterMoments, level: float = 0.95
) -> tuple[Estimate, float | None]:
    """Return the mean of b minus that of a, on different dialogues, and its p-value (Welch's t)."""
    n = int(a.n + b.n)
    if not (a.n and b.n):
        return Estimate(None, n, reason="nothing is scored on one side"), None
    gap, variance = b.mean - a.mean, a.variance + b.variance
    freedom = 0.0
    if variance > 0:
        parts = a.variance**2 / (a.clusters - 1) + b.variance**2 / (b.clusters - 1)
        freedom = variance**2 / parts
    elif variance == 0:
        freedom = a.clusters + b.clusters - 2
    return _estimate(gap, n, variance, freedom, level), _p(gap, variance, freedom)


def _estimate(value: float, n: int, variance: float, freedom: float, level: float) -> Estimate:
    if math.isnan(variance):
        return Estimate(value, n, reason=_FEW)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(variance)
    return Estimate(value, n, value - half, value + half)


def _p(value: float, variance: float, freedom: float) -> float | None:
    if math.isnan(variance):
        return None
    if variance == 0:
        return 1.0 if value == 0 else 0.0
    return float(2 * stats.t.sf(abs(value) / math.sqrt(variance), freedom))
