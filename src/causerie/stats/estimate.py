"""The `Estimate` (a number with its interval, or the reason for having none) and array inputs."""

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
"""An integer, or a generator to draw from."""
Labels: TypeAlias = Sequence[Hashable] | NDArray[np.generic]
"""One label per item: its dialogue, context or system."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One statistic of one metric; a value that is not finite becomes None."""

    value: float | None
    """The statistic; None if it is undefined."""
    n: int
    """Number of items, pairs, groups or systems (whatever the statistic counts) behind it."""
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    """Why there is no value or no interval."""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                object.__setattr__(self, name, None)
                object.__setattr__(self, "reason", self.reason or "not a finite number")

    @classmethod
    def of(cls, value: float, n: int, reason: str | None) -> Estimate:
        """Return an estimate of the value, or one without a value if there is a reason."""
        return cls(None, int(n), reason=reason) if reason else cls(float(value), int(n))

    def text(self, digits: int, *, signed: bool = False) -> str:
        """Return the value with its interval (with a plus sign if `signed`), or a dash for None."""
        if self.value is None:
            return "–"
        style = f"{'+' if signed else ''}.{digits}f"
        if self.low is None or self.high is None:
            return f"{self.value:{style}}"
        return f"{self.value:{style}} [{self.low:{style}}, {self.high:{style}}]"


def means(values: FloatArray, undefined: str) -> list[Estimate]:
    """Return row means over the items with a value; `undefined` is the reason if none has."""
    present = [row[~np.isnan(row)] for row in values]
    return [
        Estimate.of(row.mean() if len(row) else np.nan, len(row), None if len(row) else undefined)
        for row in present
    ]


def as_matrix(scores: ArrayLike) -> FloatArray:
    """Return metrics x items from a matrix or a single row; non-finite values become NaN."""
    matrix = np.array(scores, dtype=np.float64, ndmin=2)
    matrix[~np.isfinite(matrix)] = np.nan
    return matrix


def unit_of(values: FloatArray) -> float:
    """Return a divisor that keeps sums and products finite: 1 for all but absurd values."""
    return max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)) / 1e100)


def pairwise_complete(scores: ArrayLike, human: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as metrics x items, NaN wherever the score or the judgement is missing."""
    x, y = as_matrix(scores), as_matrix(human)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"{x.shape[-1]} scores but {y.shape[-1]} human judgements")
    missing = np.isnan(x) | np.isnan(y)
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def label_index(labels: Labels) -> tuple[IntArray, int]:
    """Return the labels as integers 0..k-1 in order of first appearance, and k."""
    seen: dict[object, int] = {}
    values = labels.tolist() if isinstance(labels, np.ndarray) else labels
    index = np.array([seen.setdefault(label, len(seen)) for label in values], dtype=np.int64)
    return index, len(seen)


def cluster_sums(rows: FloatArray, index: IntArray, count: int) -> FloatArray:
    """Return the sums of each row (rows x items) per cluster: rows x clusters."""
    sums = [np.bincount(index, weights=row, minlength=count) for row in rows]
    return np.array(sums, dtype=np.float64).reshape(len(rows), count)


def why_undefined(x: FloatArray, y: FloatArray, least: int = 2) -> list[str | None]:
    """Return why each row's correlation is undefined, or None; the data are pairwise complete."""

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
