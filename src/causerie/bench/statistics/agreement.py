"""How far annotators agree with one another.

Ratings are units x raters, NaN where a rater gave none; units may have different numbers of
ratings.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.estimate import Estimate, FloatArray, as_matrix

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, scale: Scale = "nominal") -> Estimate:
    """Krippendorff's alpha; n is the number of units with at least two ratings.

    1 is perfect agreement, 0 what chance gives. Units with a single rating do not count.
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


def fleiss_kappa(ratings: ArrayLike) -> Estimate:
    """Fleiss' kappa: any number of raters, who need not be the same for every unit.

    Units with fewer than two ratings do not count. Where units have different numbers of
    ratings, each unit's agreement counts the same, and each rating counts the same in the
    shares of the categories; with equal numbers this is Fleiss' original.
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


def _too_few(units: int) -> Estimate:
    """A single unit shows how far its raters agree, not how far that is above chance."""
    return Estimate(None, units, reason=f"{'only one' if units else 'no'} unit has two ratings")


def _kappa(observed: float, chance: float, n: int, *, one_category: bool) -> Estimate:
    if one_category:
        return Estimate(None, n, reason="all ratings are equal")
    return Estimate((observed - chance) / (1 - chance), n)


def _indicators(values: FloatArray) -> FloatArray:
    """One more axis: 1 at the rating's category, all 0 where there is no rating."""
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
    """Centred and scaled, which alpha does not notice and rounding does."""
    centred = values - values[~np.isnan(values)].mean()
    spread = np.nanmax(np.abs(centred))
    points: FloatArray = np.nan_to_num(centred / (spread if spread > 0 else 1))[..., None]
    return points
