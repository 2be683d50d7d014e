"""Correlation of many metrics with human judgement at once.

Every function takes `scores` (metrics x items, or one row) and `human` (one judgement per
item), and returns one `Estimate` per metric. An item counts for a metric if both the score
and the judgement are there (pairwise complete): metrics that leave items unscored are
measured on fewer items, and `Estimate.n` says on how many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from causerie.bench.statistics.estimate import (
    Estimate,
    FloatArray,
    as_matrix,
    pairwise_complete,
    why_undefined,
)

Correlation: TypeAlias = Callable[[ArrayLike, ArrayLike], list[Estimate]]


def pearson(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Pearson's r; 1 or -1 where there are only two items."""
    x, y = pairwise_complete(scores, human)
    return _estimates(row_correlation(x, y), x, why_undefined(x, y))


def spearman(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Spearman's rho: Pearson's r of the ranks, equal values sharing their mean rank."""
    x, y = pairwise_complete(scores, human)
    return _estimates(row_correlation(row_ranks(x), row_ranks(y)), x, why_undefined(x, y))


def kendall(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Kendall's tau-b, which corrects for ties on both sides."""
    x, y = pairwise_complete(scores, human)
    reasons = why_undefined(x, y)
    values = np.full(len(x), np.nan)
    for row, reason in enumerate(reasons):
        if reason is None:
            present = ~np.isnan(x[row])
            values[row] = stats.kendalltau(x[row, present], y[row, present]).statistic
    return _estimates(values, x, reasons)


def point_biserial(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Pearson's r with a judgement that takes two values, the larger of them being "yes"."""
    judgements = as_matrix(human)
    distinct = np.unique(judgements[~np.isnan(judgements)])
    if len(distinct) > 2:
        raise ValueError(f"a point-biserial correlation needs two classes, not {len(distinct)}")
    return pearson(scores, human)


def partial(
    scores: ArrayLike, human: ArrayLike, covariates: ArrayLike, *, ranks: bool = False
) -> list[Estimate]:
    """Correlation that is left when linear effects of the covariates are taken out of both.

    `covariates` is covariates x items (or one row), for instance the response's length; an
    item without one of them does not count. With `ranks` everything is ranked first, which
    is the Spearman version.
    """
    given = as_matrix(covariates)
    incomplete = np.isnan(given).any(axis=0)
    x, y = pairwise_complete(scores, np.where(incomplete, np.nan, as_matrix(human)))
    least = len(given) + 3
    reasons = why_undefined(x, y, least)
    values = np.full(len(x), np.nan)
    for row, reason in enumerate(reasons):
        if reason is None:
            present = ~np.isnan(x[row])
            data = np.vstack([x[row, present], y[row, present], given[:, present]])
            values[row], reasons[row] = _partial(row_ranks(data) if ranks else data)
    return _estimates(values, x, reasons)


CORRELATIONS: dict[str, Correlation] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def row_ranks(values: FloatArray) -> FloatArray:
    """Mean ranks within each row, NaN staying NaN."""
    ranks: FloatArray = stats.rankdata(values, axis=-1, nan_policy="omit")
    return ranks


def row_correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of each row of pairwise complete data; NaN where undefined."""
    a, b = _centred(x), _centred(y)
    norm = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = np.clip((a * b).sum(axis=-1) / norm, -1, 1)
    return result


def _centred(values: FloatArray) -> FloatArray:
    """Rows minus their mean, zero where missing, scaled so that squares stay in range."""
    present = ~np.isnan(values)
    filled = np.where(present, values, 0)
    largest = np.abs(filled).max(axis=-1, keepdims=True, initial=0)
    filled = filled / np.where(largest > 0, largest, 1)
    count = np.maximum(present.sum(axis=-1, keepdims=True), 1)
    centred = np.where(present, filled - filled.sum(axis=-1, keepdims=True) / count, 0)
    spread = np.abs(centred).max(axis=-1, keepdims=True, initial=0)
    scaled: FloatArray = centred / np.where(spread > 0, spread, 1)
    return scaled


def _partial(data: FloatArray) -> tuple[float, str | None]:
    """Correlation of the first two rows given the others, or why there is none."""
    centred = _centred(data)
    coefficients = np.linalg.lstsq(centred[2:].T, centred[:2].T, rcond=None)[0]
    left = centred[:2] - coefficients.T @ centred[2:]
    # Residuals of an exact fit are rounding noise, whose correlation means nothing.
    share = (left**2).sum(axis=1) / (centred[:2] ** 2).sum(axis=1)
    if share[0] < 1e-12:
        return np.nan, "the covariates determine the metric's score"
    if share[1] < 1e-12:
        return np.nan, "the covariates determine the human judgement"
    return float(row_correlation(left[:1], left[1:])[0]), None


def _estimates(values: FloatArray, x: FloatArray, reasons: list[str | None]) -> list[Estimate]:
    counts = (~np.isnan(x)).sum(axis=1)
    return [Estimate.of(v, n, why) for v, n, why in zip(values, counts, reasons, strict=True)]
