"""Correlation of many metrics with human judgement at once.

Every function takes `scores` (metrics x items, or one row) and `human` (one judgement per
item), and returns one `Estimate` per metric. An item counts for a metric if it has both a score
and a judgement (pairwise complete): metrics that leave items unscored are measured on fewer
items, and `Estimate.n` says on how many. Below them are correlations within contexts and
between systems, and the ranks and correlations of weighted items that resampling uses (a
resample is a weight, a count, per item).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    Labels,
    as_matrix,
    cluster_sums,
    label_index,
    means,
    pairwise_complete,
    why_undefined,
)

Correlation: TypeAlias = Callable[[ArrayLike, ArrayLike], list[Estimate]]


def pearson(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Return Pearson's r; 1 or -1 if there are only two items."""
    x, y = pairwise_complete(scores, human)
    return _estimates(row_correlation(x, y), x, why_undefined(x, y))


def spearman(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Return Spearman's rho: Pearson's r of the ranks, where equal values share their mean rank."""
    x, y = pairwise_complete(scores, human)
    return _estimates(row_correlation(row_ranks(x), row_ranks(y)), x, why_undefined(x, y))


def kendall(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Return Kendall's tau-b, which corrects for ties on both sides."""
    x, y = pairwise_complete(scores, human)
    reasons = why_undefined(x, y)
    values = np.full(len(x), np.nan)
    for row, reason in enumerate(reasons):
        if reason is None:
            present = ~np.isnan(x[row])
            values[row] = stats.kendalltau(x[row, present], y[row, present]).statistic
    return _estimates(values, x, reasons)


def point_biserial(scores: ArrayLike, human: ArrayLike) -> list[Estimate]:
    """Return Pearson's r with a judgement of two values, the larger of which means "yes"."""
    judgements = as_matrix(human)
    distinct = np.unique(judgements[~np.isnan(judgements)])
    if len(distinct) > 2:
        raise ValueError(f"a point-biserial correlation needs two classes, not {len(distinct)}")
    return pearson(scores, human)


def partial(
    scores: ArrayLike, human: ArrayLike, covariates: ArrayLike, *, ranks: bool = False
) -> list[Estimate]:
    """Return the correlation that is left after regressing the covariates out of both sides.

    `covariates` is covariates x items (or one row), for instance the response's length; an
    item that lacks one of them does not count. With `ranks` everything is ranked first, which
    gives the Spearman version.
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


def pearson_r(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's r of two series of numbers; nan if either is constant."""
    if any(np.ptp(side) <= 1e-12 * np.abs(side).max() for side in (a, b)):
        return math.nan  # the rounding errors of a constant would correlate with anything
    return float(row_correlation(a[None], b[None])[0])


CORRELATIONS: dict[str, Correlation] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def row_ranks(values: FloatArray) -> FloatArray:
    """Return mean ranks within each row; NaN stays NaN."""
    ranks: FloatArray = stats.rankdata(values, axis=-1, nan_policy="omit")
    return ranks


def row_correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return Pearson's r of each row of pairwise complete data; NaN where undefined."""
    a, b = _centred(x), _centred(y)
    norm = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = np.clip((a * b).sum(axis=-1) / norm, -1, 1)
    return result


def _centred(values: FloatArray) -> FloatArray:
    """Centre the rows, with zero where missing, and scale them so that squares stay in range."""
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
    """Return the correlation of the first two rows given the others, or why there is none."""
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


def group_values(
    correlation: Correlation, scores: ArrayLike, human: ArrayLike, groups: Labels
) -> FloatArray:
    """Return metrics x groups (in order of first appearance): the correlation within each group.

    It is NaN where undefined: fewer than two scored items in the group, or all of them equal.
    """
    x, y = as_matrix(scores), as_matrix(human)[0]
    index, count = label_index(groups)
    order = np.argsort(index, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(index, minlength=count))[:-1])
    values = np.full((len(x), count), np.nan)
    for group, items in enumerate(members):
        for row, estimate in enumerate(correlation(x[:, items], y[items])):
            if estimate.value is not None:
                values[row, group] = estimate.value
    return values


def mean_of_groups(values: FloatArray) -> list[Estimate]:
    """Return the unweighted mean over the groups that have a value; n is their number."""
    return means(values, "no context has two items that differ in score and in judgement")


def system_level(
    correlation: Correlation, scores: ArrayLike, human: ArrayLike, systems: Labels
) -> list[Estimate]:
    """Return the correlation of systems' mean scores with their mean judgements; n counts systems.

    Means are over a system's items that have both a score and a judgement.
    """
    x, y = pairwise_complete(scores, human)
    index, count = label_index(systems)
    present = cluster_sums((~np.isnan(x)).astype(np.float64), index, count)
    with np.errstate(invalid="ignore"):
        mean_x = cluster_sums(np.nan_to_num(x), index, count) / present
        mean_y = cluster_sums(np.nan_to_num(y), index, count) / present
    return [correlation(row_x, row_y)[0] for row_x, row_y in zip(mean_x, mean_y, strict=True)]


def weighted_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean ranks of the items under each column of `weights` (items x resamples).

    With counts as weights these are the ranks in a resample that repeats each item that often:
    the copies of an item, like all equal values, share their mean rank.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    group = np.empty(len(values), np.int64)
    group[order] = np.cumsum(new) - 1
    totals = np.add.reduceat(weights[order], np.flatnonzero(new), axis=0)
    middle = np.cumsum(totals, axis=0) - (totals - 1) / 2
    ranks: FloatArray = middle[group]
    return ranks


def weighted_covariance(variables: list[FloatArray], weights: FloatArray) -> FloatArray:
    """Return covariances (resamples x variables x variables), times each resample's total weight.

    Each variable is items x resamples, like the weights.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=0)
        centred = [v - (v * weights).sum(axis=0) / total for v in variables]
    covariance = np.empty((weights.shape[1], len(variables), len(variables)))
    for i, one in enumerate(centred):
        weighted = one * weights
        for j, other in enumerate(centred[: i + 1]):
            products = np.einsum("ir,ir->r", weighted, other)
            covariance[:, i, j] = covariance[:, j, i] = products
    return covariance


def correlation_of_covariance(covariance: FloatArray) -> FloatArray:
    """Return the correlation of the first two variables, given the others if there are any.

    It is NaN where a variance is zero, or is only the rounding error of a zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        left = covariance[..., :2, :2]
        whole = covariance[..., (0, 1), (0, 1)]
        if covariance.shape[-1] > 2:
            cross, given = covariance[..., :2, 2:], covariance[..., 2:, 2:]
            usable = np.isfinite(given).all(axis=(-1, -2), keepdims=True)
            inverse = np.linalg.pinv(np.where(usable, given, 0), hermitian=True)
            left = left - cross @ inverse @ cross.swapaxes(-1, -2)
        spread = left[..., (0, 1), (0, 1)]
        spread = np.where(spread > 1e-12 * whole, spread, np.nan)
        result: FloatArray = np.clip(left[..., 0, 1] / np.sqrt(spread.prod(axis=-1)), -1, 1)
    return result
