"""What human exchanges score on each dimension, so that all of them can be put on one scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

from causerie.errors import CauserieError
from causerie.metrics.base import Level
from causerie.metrics.followups.files import check_table, read_table
from causerie.metrics.followups.hypotheses import Dimensions, dimension_name
from causerie.models.artifact import damaged


@dataclass(frozen=True, slots=True)
class Statistic:
    """Of one dimension on human exchanges."""

    mean: float
    deviation: float


Statistics: TypeAlias = Mapping[str, Statistic]
"""By dimension."""


def read_statistics(path: Path, metric: str, known: Dimensions) -> dict[Level, Statistics]:
    """One metric's statistics of both levels, from a file that may have those of several.

    The file has `{"fed": {"turn": {"interesting": {"mean": 0.1, "deviation": 0.2}, ...}}}`, with
    names among the `known` dimensions.
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
            raise CauserieError(f"{where}.{min(unknown)} is no dimension of this level")
    return found


def measured_statistic(numbers: Sequence[float]) -> Statistic:
    """From an artifact, which may be anybody's."""
    try:
        mean, deviation = numbers
    except (TypeError, ValueError) as error:
        raise damaged("of the language model", error) from error
    if not _is_valid(found := Statistic(mean, deviation)):
        raise damaged("of the language model", ValueError(f"{found} is no statistic"))
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
