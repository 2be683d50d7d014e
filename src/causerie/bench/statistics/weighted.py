"""Ranks and correlations of weighted items: a resample is a weight (a count) per item."""

from __future__ import annotations

import numpy as np

from causerie.bench.statistics.estimate import FloatArray


def weighted_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean ranks of the items under each column of `weights` (items x resamples).

    With counts as weights these are the ranks in the resample that repeats each item that
    often: the copies of an item and all equal values share their mean rank.
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
    """Covariances (resamples x variables x variables), up to the resample's total weight.

    Each variable is items x resamples, as the weights are.
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
    """Correlation of the first two variables, given the others if there are any.

    NaN where a variance is zero, or below what rounding leaves of zero.
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
