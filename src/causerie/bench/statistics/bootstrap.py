"""Confidence intervals by resampling whole clusters (dialogues, contexts).

Six intervals were simulated (percentile, BCa, each also widened as below; two Fisher-z ones)
at 66 clusters of 3 to 6 items, correlations .3 and .7, judgements that are normal, on a 1-5
scale, or means of three such ratings; 1,000 runs a case, so a coverage is known to about 0.7
points. Apart from Pearson with log-normal scores all came within two points of 95%; the
widened percentile interval was closest on average (94.3 to 96.0), by less than that error
against most, and it is the simplest that works for any statistic. On fresh draws it covers
94.2 to 94.4. Pearson with log-normal scores and a correlation of .7 defeats all six (84 to
87%, this one 84): there Spearman's rho, at 95%, is the one to trust.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from scipy import stats

from causerie.bench.statistics.estimate import Estimate, FloatArray, Seed
from causerie.bench.statistics.resampling import ClusterStatistic


def with_intervals(
    estimates: Sequence[Estimate],
    statistic: ClusterStatistic,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: Seed,
) -> list[Estimate]:
    """The estimates with the interval of the same statistic, one per metric.

    Percentiles of the resamples, moved outwards as Student's t with clusters - 1 degrees of
    freedom is wider than a normal distribution. Resamples in which the statistic is undefined
    (all scores equal, say) are left out; where more than half are, there is no interval.
    """
    if statistic.clusters < 2:
        reason = "an interval takes at least two dialogues or contexts"
        return [_without(estimate, reason) for estimate in estimates]
    values = statistic(draw_counts(statistic.clusters, resamples, seed))
    tail = widened_tail(level, statistic.clusters)
    result = []
    for estimate, drawn in zip(estimates, values.T, strict=True):
        defined = drawn[~np.isnan(drawn)]
        if estimate.value is None or len(defined) <= resamples / 2:
            result.append(_without(estimate, "undefined in most resamples, so no interval"))
            continue
        low, high = np.quantile(defined, [tail, 1 - tail])
        result.append(replace(estimate, low=float(low), high=float(high)))
    return result


def draw_counts(clusters: int, resamples: int, seed: Seed) -> FloatArray:
    """Resamples x clusters: how often each cluster was drawn, with replacement."""
    drawn = np.random.default_rng(seed).integers(clusters, size=(resamples, clusters))
    cells = drawn + clusters * np.arange(resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * clusters)
    return counts.reshape(resamples, clusters).astype(np.float64)


def widened_tail(level: float, clusters: int) -> float:
    """The share to cut off at each end so that few clusters do not make intervals short."""
    t = stats.t.ppf((1 - level) / 2, clusters - 1)
    return NormalDist().cdf(float(t) * (clusters / (clusters - 1)) ** 0.5)


def _without(estimate: Estimate, reason: str) -> Estimate:
    return replace(estimate, reason=estimate.reason or reason)
