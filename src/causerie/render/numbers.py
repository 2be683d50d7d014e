"""Numbers and lists of names, formatted for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev

NONE = "–"
"""Placeholder where there is no number."""


def number(value: float | None, digits: int = 3) -> str:
    """Return a rounded number with a true minus sign and never minus zero; "–" for None."""
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if not float(text) else text).replace("-", "−")


def brief(value: float | None) -> str:
    """Return three significant digits of a number on any scale; a dash for None."""
    if value is None or not math.isfinite(value):
        return NONE
    digits = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return digits.replace("-", "−")


def mean_and_deviation(values: Sequence[float], *, percent: bool = False) -> str:
    """Return the mean of several runs, and their standard deviation if there are several."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return NONE
    shown = [fmean(known), pstdev(known)][: len(known)]
    return " ± ".join(f"{value:.1%}" if percent else f"{value:.3f}" for value in shown)


def counted(count: int, noun: str) -> str:
    """Return the count with its noun, in the plural unless the count is one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(parts: Sequence[str]) -> str:
    """Return the parts as "a, b and c"."""
    return " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), *parts[-1:]])
