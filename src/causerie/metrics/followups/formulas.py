"""The formulas of FED and C-PMI, and statistics of human exchanges that put them on one scale.

With history c, response r and hypothesis h, `crh` stands for L(c, r, h), the average
log-likelihood of the sequence of all three (section 4), `ch` for L(c, h), and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias, get_args

from causerie.errors import CauserieError
from causerie.metrics.base import Level
from causerie.metrics.followups.hypotheses import (
    Dimension,
    Dimensions,
    check_table,
    dimension_name,
    read_table,
)
from causerie.models.artifact import damaged


@dataclass(frozen=True, slots=True)
class Statistic:
    """Mean and standard deviation of one dimension on human exchanges."""

    mean: float
    deviation: float


Statistics: TypeAlias = Mapping[str, Statistic]
"""Statistics by dimension."""


def nll(crh: float) -> float:
    """Return FED's score of a hypothesis (section 3)."""
    return -crh


def cpmi(crh: float, h: float, ch: float, rh: float) -> float:
    """Return C-PMI(c, r | h) = log p(c, r, h) p(h) / p(c, h) p(r, h) (section 4)."""
    return crh + h - ch - rh


def cpmi_sym(crh: float, rch: float, h: float, ch: float, rh: float) -> float:
    """Return the mean of C-PMI(c, r | h) and C-PMI(r, c | h) (section 4)."""
    return (cpmi(crh, h, ch, rh) + cpmi(rch, h, rh, ch)) / 2


def contrast(negative: Sequence[float], positive: Sequence[float]) -> float:
    """Return a dimension's score from those of its hypotheses (section 3).

    The paper prints sums; the published code, which produced its numbers, takes means, and 0 for
    a side without hypotheses. C-PMI replaces the NLL with the same sign.
    """
    return _mean(negative) - _mean(positive)


def overall(values: Mapping[Dimension, float], statistics: Statistics | None) -> float:
    """Return one number for all dimensions; NaN if there is none to average.

    With statistics, this is the mean of the dimensions that have some, each z-scored on human
    exchanges. Without, it is the plain mean of the dimensions with both positive and negative
    hypotheses, because those with only one side have another scale.
    """
    if statistics is None:
        terms = [value for dimension, value in values.items() if _two_sided(dimension)]
    else:
        terms = [
            (value - human.mean) / human.deviation
            for dimension, value in values.items()
            if (human := statistics.get(dimension.name))
        ]
    return fmean(terms) if terms else math.nan


def _two_sided(dimension: Dimension) -> bool:
    return bool(dimension.positive and dimension.negative)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def read_statistics(path: Path, metric: str, known: Dimensions) -> dict[Level, Statistics]:
    """Read one metric's statistics for both levels; the file may have those of several metrics.

    The file has `{"fed": {"turn": {"interesting": {"mean": 0.1, "deviation": 0.2}, ...}}}`, with
    names of `known` dimensions.
    """
    table: Any = read_table(path)
    levels = check_table(table.get(metric), f"{path}: {metric}")
    found: dict[Level, Statistics] = {}
    for level in get_args(Level):
        where = f"{path}: {metric}.{level}"
        by_dimension = check_table(levels.get(level, {}), where)
        found[level] = {
            dimension_name(name, f"{where}.{name}"): _statistic(value, f"{where}.{name}")
            for name, value in by_dimension.items()
        }
        if unknown := found[level].keys() - {dimension.name for dimension in known[level]}:
            raise CauserieError(f"{where}.{min(unknown)} is not a dimension of this level")
    return found


def measured_statistic(numbers: Sequence[float]) -> Statistic:
    """Check a statistic from an artifact, which may be untrusted."""
    try:
        mean, deviation = numbers
    except (TypeError, ValueError) as error:
        raise damaged("of the language model", error) from error
    if not _is_valid(found := Statistic(mean, deviation)):
        raise damaged("of the language model", ValueError(f"{found} is not a valid statistic"))
    return found


def _statistic(value: Any, where: str) -> Statistic:
    table = check_table(value, where)
    try:
        found = Statistic(float(table["mean"]), float(table["deviation"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        found = Statistic(math.nan, math.nan)
    if not _is_valid(found):
        raise CauserieError(f"{where} must have a mean and a deviation above 0")
    return found


def _is_valid(statistic: Statistic) -> bool:
    return math.isfinite(statistic.mean) and 0 < statistic.deviation < math.inf
