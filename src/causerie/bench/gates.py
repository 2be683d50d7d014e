"""Conditions on a comparison, such as `density < -0.1`, so that it can stop a release."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from causerie.errors import CauserieError
from causerie.stats import Estimate

_CONDITION = re.compile(r"\s*(?P<column>[^\s<>=]+)\s*(?P<sign>[<>])\s*(?P<number>[^\s<>=]+)\s*")


@dataclass(frozen=True)
class Condition:
    """Holds if the difference of a column is on one side of a number."""

    column: str
    sign: Literal["<", ">"]
    number: float

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.number:g}"

    def holds(self, difference: Estimate, *, significant: bool = False) -> bool | None:
        """Whether it holds; if `significant`, for the whole interval. None: cannot be told."""
        if significant:
            value = difference.high if self.sign == "<" else difference.low
        else:
            value = difference.value
        if value is None:
            return None
        return value < self.number if self.sign == "<" else value > self.number


def parse_condition(text: str, columns: Sequence[str]) -> Condition:
    """`COLUMN < NUMBER` or `COLUMN > NUMBER`, on a column that is compared."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise CauserieError(
            f"the condition {text!r} cannot be read: write COLUMN < NUMBER or COLUMN > NUMBER"
        )
    try:
        number = float(match["number"])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CauserieError(
            f"the condition {text!r} compares with {match['number']!r}: write a number there"
        )
    if match["column"] not in columns:
        raise CauserieError(
            f"the condition {text!r} is about {match['column']!r}, which is not compared: "
            f"use one of {', '.join(columns)}"
        )
    return Condition(match["column"], "<" if match["sign"] == "<" else ">", number)
