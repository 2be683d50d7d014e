"""How far annotators agree, and how well a single annotator would do in a metric's place.

Ratings are units x raters (or units x slots), NaN where a rater gave none; units may have
different numbers of ratings.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from causerie.stats.correlation import (
    Correlation,
    correlation_of_covariance,
    weighted_covariance,
    weighted_ranks,
)
from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    Labels,
    Seed,
    as_matrix,
    cluster_sums,
    label_index,
)
from causerie.stats.resampling import ClusterStatistic, with_intervals

Scale = Literal["nominal", "ordinal", "interval"]
_NO_ITEM = "no item has two ratings"


def krippendorff_alpha(ratings: ArrayLike, scale: Scale = "nominal") -> Estimate:
    """Return Krippendorff's alpha; n is the number of units with at least two ratings.

    1 is perfect agreement, 0 is chance. Units with a single rating do not count.
    """
    values = as_matrix(ratings)
    values = values[(~np.isnan(values)).sum(axis=1) >= 2]
    if len(values) < 2:
        return _too_few(len(values))
    # All three are squared distances: of the values, of their mid-ranks (the ordinal distance
    # counts what lies between), of indicator vectors (twice the nominal 0 or 1).
    points = {"nominal": _indicators, "ordinal": _mid_ranks, "interval": _standardised}[scale](
        values
    )
    present = ~np.isnan(values)
    per_unit = present.sum(axis=1)
    square = (points**2).sum(axis=-1)
    within = per_unit * square.sum(axis=1) - (points.sum(axis=1) ** 2).sum(axis=-1)
    total = per_unit.sum()
    overall = total * square.sum() - (points.sum(axis=(0, 1)) ** 2).sum()
    if np.ptp(values[present]) == 0:
        return Estimate(None, len(values), reason="all ratings are equal")
    observed = (within / (per_unit - 1)).sum()
    return Estimate(float(1 - observed * (total - 1) / overall), len(values))


def mean_reliability(
    values: ArrayLike, clusters: Labels, *, resamples: int = 1000, seed: Seed
) -> Estimate:
    """Return the reliability of row means: how much of their variance is due to the rows.

    1 - (variance within rows) / (variance between rows), as mean squares: Cronbach's alpha
    where columns have no identity, also known as ICC(1, k). 0 is chance; below 0, values of
    one row differ more than those of different rows. Rows with a single value do not count. The
    interval comes from resampling whole clusters of rows.
    """
    matrix = as_matrix(values)
    usable = (~np.isnan(matrix)).sum(axis=1) >= 2
    matrix = matrix[usable]
    if len(matrix) < 2:
        return _too_few(len(matrix))
    if np.ptp(matrix[~np.isnan(matrix)]) == 0:
        return Estimate(None, len(matrix), reason="all ratings are equal")
    index, count = label_index([c for c, u in zip(clusters, usable, strict=True) if u])
    sums = cluster_sums(_reliability_parts(matrix).T, index, count)
    statistic = ClusterStatistic(count, lambda counts: _reliability(counts @ sums.T)[:, None])
    found = Estimate(float(_reliability(sums.sum(axis=1))), len(matrix))
    return with_intervals([found], statistic, resamples=resamples, seed=seed)[0]


def fleiss_kappa(ratings: ArrayLike) -> Estimate:
    """Return Fleiss' kappa, for any number of raters, who may differ between units.

    Units with fewer than two ratings do not count. Where units have different numbers of
    ratings, each unit's agreement has the same weight, and each rating has the same weight in
    the shares of the categories; with equal numbers this is Fleiss' original.
    """
    values = as_matrix(ratings)
    values = values[(~np.isnan(values)).sum(axis=1) >= 2]
    n = len(values)
    if n < 2:
        return _too_few(n)
    counts = _indicators(values).sum(axis=1)
    per_unit = counts.sum(axis=1)
    observed = ((counts**2).sum(axis=1) - per_unit) / (per_unit * (per_unit - 1))
    shares = counts.sum(axis=0) / per_unit.sum()
    return _kappa(float(observed.mean()), float(shares @ shares), n, one_category=len(shares) == 1)


def cohen_kappa(one: ArrayLike, other: ArrayLike) -> Estimate:
    """Return Cohen's kappa of two raters; n is the number of units that both have rated."""
    ratings = np.column_stack([as_matrix(one)[0], as_matrix(other)[0]])
    values = ratings[~np.isnan(ratings).any(axis=1)]
    if not len(values):
        return Estimate(None, 0, reason="no unit has two ratings")
    shares = _indicators(values).mean(axis=0)
    observed = float((values[:, 0] == values[:, 1]).mean())
    chance = float(shares[0] @ shares[1])
    return _kappa(observed, chance, len(values), one_category=shares.shape[1] == 1)


def leave_one_out_ratings(
    ratings: ArrayLike, *, ranks: bool = False, groups: ArrayLike | None = None
) -> Estimate:
    """Return the correlation of one rating with the mean of the item's other ratings.

    Raters are anonymous: a correlation per slot would depend on the order of the lists (sorted
    lists would even look excellent). So each rating of an item is paired with the mean of its
    others, all these points enter one correlation (Pearson, or Spearman with `ranks`), and the
    points of an item share a weight of 1: the order within lists has no influence, lists may
    differ in length, and items with a single rating do not count. n is the number of items.

    `groups` labels the columns where several ratings come from one occasion (the votes on one
    comparison, say): "the others" are then the ratings of other occasions.
    """
    values = as_matrix(ratings)
    others = _mean_of_others(values, np.arange(values.shape[1]) if groups is None else groups)
    usable = ~np.isnan(others)
    n = int(usable.any(axis=1).sum())
    if n < 2:
        return Estimate(None, n, reason="only one item has two ratings" if n else _NO_ITEM)
    weight = np.broadcast_to(1 / np.maximum(usable.sum(axis=1, keepdims=True), 1), values.shape)
    weights = weight[usable][:, None]
    points = [values[usable], others[usable]]
    if any(np.ptp(row) == 0 for row in points):
        return Estimate(None, n, reason="the ratings are all equal")
    columns = [weighted_ranks(row, weights) if ranks else row[:, None] for row in points]
    return Estimate(float(correlation_of_covariance(weighted_covariance(columns, weights))[0]), n)


def split_half(
    correlation: Correlation, ratings: ArrayLike, *, splits: int = 100, seed: Seed
) -> Estimate:
    """Return the reliability of the mean rating: split-half correlation, stepped up.

    Each item's ratings are split at random into halves (one is left out of an odd number),
    the means of the halves are correlated, and Spearman-Brown's kr / (1 + (k - 1)r) gives the
    value for all ratings, where k is their number over that of a half: 2, or a little more
    where one is left out. The result is the mean over `splits`. Its square root is roughly the
    highest correlation any metric can reach with the mean rating. n is the number of items
    with two ratings.
    """
    values = as_matrix(ratings)
    values = values[(~np.isnan(values)).sum(axis=1) >= 2]
    if len(values) == 0:
        return Estimate(None, 0, reason=_NO_ITEM)
    generator = np.random.default_rng(seed)
    given = (~np.isnan(values)).sum(axis=1, keepdims=True)
    half = given // 2
    times = float((given / half).mean())
    place = np.arange(values.shape[1])
    found: list[float] = []
    reason: str | None = None
    for _ in range(splits):
        keys = np.where(np.isnan(values), np.inf, generator.random(values.shape))
        shuffled = np.take_along_axis(np.nan_to_num(values), np.argsort(keys, axis=1), axis=1)
        one = (shuffled * (place < half)).sum(axis=1) / half[:, 0]
        other = (shuffled * ((place >= half) & (place < 2 * half))).sum(axis=1) / half[:, 0]
        estimate = correlation(one, other)[0]
        reason = reason or estimate.reason
        if estimate.value is not None and (stepped := 1 + (times - 1) * estimate.value) > 0:
            found.append(times * estimate.value / stepped)
    if not found:
        return Estimate(None, len(values), reason=reason or "the halves contradict each other")
    return Estimate(float(np.mean(found)), len(values))


def _reliability_parts(values: FloatArray) -> FloatArray:
    """Return rows x sums: one, count, squares within the row, total, square of the mean x count."""
    points = _standardised(values)[..., 0]
    count = (~np.isnan(values)).sum(axis=1)
    total = points.sum(axis=1)
    own = total**2 / count
    return np.column_stack([np.ones(len(values)), count, (points**2).sum(axis=1) - own, total, own])


def _reliability(sums: FloatArray) -> FloatArray:
    rows, values, within, total, own = (sums[..., i] for i in range(5))
    with np.errstate(invalid="ignore", divide="ignore"):
        between = (own - total**2 / values) / (rows - 1)
        result: FloatArray = 1 - within / (values - rows) / between
    return np.where(np.isfinite(result), result, np.nan)  # equal row means have no reliability


def _too_few(units: int) -> Estimate:
    """A single unit shows how far its raters agree, but not how far above chance that is."""
    return Estimate(None, units, reason=f"{'only one' if units else 'no'} unit has two ratings")


def _kappa(observed: float, chance: float, n: int, *, one_category: bool) -> Estimate:
    if one_category:
        return Estimate(None, n, reason="all ratings are equal")
    return Estimate((observed - chance) / (1 - chance), n)


def _indicators(values: FloatArray) -> FloatArray:
    """Add an axis of categories: 1 at the rating's category, all 0 where there is no rating."""
    categories = np.unique(values[~np.isnan(values)])
    indicators: FloatArray = (values[..., None] == categories).astype(np.float64)
    return indicators


def _mid_ranks(values: FloatArray) -> FloatArray:
    present = ~np.isnan(values)
    _, category, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    ranks = np.zeros(values.shape)
    ranks[present] = (np.cumsum(counts) - counts / 2 - counts.sum() / 2)[category]
    return ranks[..., None]


def _standardised(values: FloatArray) -> FloatArray:
    """Centre and scale the values: alpha is unaffected, rounding errors shrink."""
    centred = values - values[~np.isnan(values)].mean()
    spread = np.nanmax(np.abs(centred))
    points: FloatArray = np.nan_to_num(centred / (spread if spread > 0 else 1))[..., None]
    return points


def _mean_of_others(values: FloatArray, groups: ArrayLike) -> FloatArray:
    """Return, for each rating, the mean of the item's ratings of other groups; NaN if none."""
    labels = np.asarray(groups)
    result = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        # Summed afresh and in order, so that rounding errors break no tie between equal lists.
        others = np.sort(values[:, labels != labels[column]], axis=1)
        count = (~np.isnan(others)).sum(axis=1)
        mean = np.nansum(others, axis=1) / np.maximum(count, 1)
        result[:, column] = np.where((count > 0) & ~np.isnan(values[:, column]), mean, np.nan)
    return result
