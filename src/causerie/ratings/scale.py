"""Ratings on one scale, 1 to 5, and the classes the paper makes of them."""

from __future__ import annotations

import math

from causerie.errors import CauserieError

LOWEST, HIGHEST = 1.0, 5.0
LOW = 3.0
"""A rating below it is low."""


def to_scale(rating: float, scale: tuple[float, float]) -> float:
    """A rating mapped linearly from its own scale to 1..5; refused if it is outside its scale."""
    low, high = scale
    if not -math.inf < low < high < math.inf:
        raise CauserieError(f"a scale goes from low to high, not from {low:g} to {high:g}")
    if not low <= rating <= high:
        raise CauserieError(f"rating {rating:g} is outside its scale, {low:g} to {high:g}")
    return LOWEST + (HIGHEST - LOWEST) * (rating - low) / (high - low)


def is_low(rating: float) -> bool:
    return rating < LOW


def five_class(rating: float) -> int:
    """1 to 5, rounded half up: 4.5 is in class 5, 3.4 in class 3."""
    return int(min(HIGHEST, max(LOWEST, math.floor(rating + 0.5))))
