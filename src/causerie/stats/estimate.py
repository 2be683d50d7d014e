"""A number with its interval, or the reason why there is none; and how arrays come in."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator
"""An integer, or a generator to draw on."""
Labels: TypeAlias = Sequence[Hashable] | NDArray[np.generic]
"""One label per item: its dialogue, context or system."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One statistic of one metric; what is not a finite number is none."""

    value: float | None
    """None if it is undefined here."""
    n: int
    """How many items (pairs, groups, systems: what the statistic counts) it rests on."""
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    """Why there is no value, or no interval."""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                object.__setattr__(self, name, None)
                object.__setattr__(self, "reason", self.reason or "not a finite number")

    @classmethod
    def of(cls, value: float, n: int, reason: str | None) -> Estimate:
        """The value, unless there is a reason against it."""
        return cls(None, int(n), reason=reason) if reason else cls(float(value), int(n))

    def text(self, digits: int, *, signed: bool = False) -> str:
        """The value with its interval, with a plus sign if `signed`; a dash if there is none."""
        if self.value is None:
            return "–"
        style = f"{'+' if signed else ''}.{digits}f"
        if self.low is None or self.high is None:
            return f"{self.value:{style}}"
        return f"{self.value:{style}} [{self.low:{style}}, {self.high:{style}}]"


def means(values: FloatArray, undefined: str) -> list[Estimate]:
    """Mean of each row over the items that have a value, n of them; `undefined` says why none."""
    present = [row[~np.isnan(row)] for row in values]
    return [
        Estimate.of(row.mean() if len(row) else np.nan, len(row), None if len(row) else undefined)
        for row in present
    ]


def as_matrix(scores: ArrayLike) -> FloatArray:
    """Metrics x items from a matrix or a single row; what is not finite becomes NaN."""
    matrix = np.array(scores, dtype=np.float64, ndmin=2)
    matrix[~np.isfinite(matrix)] = np.nan
    return matrix


def unit_of(values: FloatArray) -> float:
    """What to divide by so that sums and products stay finite; 1 for all but absurd values."""
    return max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)) / 1e100)


def pairwise_complete(scores: ArrayLike, human: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as metrics x items, NaN wherever the score or the human judgement is missing."""
    x, y = as_matrix(scores), as_matrix(human)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"{x.shape[-1]} scores but {y.shape[-1]} human judgements")
    missing = np.isnan(x) | np.isnan(y)
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def label_index(labels: Labels) -> tuple[IntArray, int]:
    """The labels as integers 0..k-1 in order of first appearance, and k."""
    seen: dict[object, int] = {}
    values = labels.tolist() if isinstance(labels, np.ndarray) else labels
    index = np.array([seen.setdefault(label, len(seen)) for label in values], dtype=np.int64)
    return index, len(seen)


def cluster_sums(rows: FloatArray, index: IntArray, count: int) -> FloatArray:
    """Sums of each row (rows x items) per cluster: rows x clusters."""
    sums = [np.bincount(index, weights=row, minlength=count) for row in rows]
    return np.array(sums, dtype=np.float64).reshape(len(rows), count)


def why_undefined(x: FloatArray, y: FloatArray, least: int = 2) -> list[str | None]:
    """Per row of pairwise complete data, why a correlation is undefined; None if it is not."""

    def why(scores: FloatArray, judgements: FloatArray) -> str | None:
        present = ~np.isnan(scores)
        n = int(present.sum())
        if n == 0:
            return "no item has both a score and a human judgement"
        if n < least:
            return f"only {n} of the {least} items it takes have a score and a human judgement"
        if np.ptp(scores[present]) == 0:
            return "the metric gives every item the same score"
        if np.ptp(judgements[present]) == 0:
            return "the human judgements are all equal"
        return None

    return [why(scores, judgements) for scores, judgements in zip(x, y, strict=True)]
