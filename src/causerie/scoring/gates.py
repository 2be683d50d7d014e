"""Conditions on scores, such as `cosine < 0.3`, so that a run or a comparison can stop a release.

A condition is about one quantity: the mean of a column, its mean percentile among human
responses, its difference between two runs, the share of its items that are unscored, or the share
of records that were skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args
from xml.etree import ElementTree

from causerie.errors import CauserieError
from causerie.io import write_whole
from causerie.metrics.base import Column
from causerie.scoring.plan import Plan

Quantity: TypeAlias = Literal["mean", "difference", "percentile", "unscored", "skipped"]
Operator: TypeAlias = Literal["<", ">"]

FAILED = 3
"""The exit status of a run whose gate says no."""
_SHARES = ("unscored", "skipped")
_CONDITION = re.compile(
    r"\s*(?:(?P<quantity>[a-z]+)\s*\(\s*(?P<inner>[^\s()<>=]+)\s*\)|(?P<bare>[^\s()<>=]+))"
    r"\s*(?P<operator>[<>])\s*(?P<limit>[^\s<>=%]+)\s*(?P<percent>%?)\s*"
)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds if a quantity is on one side of a limit."""

    quantity: Quantity
    column: str | None
    """None for the share of skipped records, which is about no column."""
    operator: Operator
    limit: float

    def __str__(self) -> str:
        about = self.quantity if self.column is None else f"{self.quantity}({self.column})"
        return f"{about} {self.operator} {self.shown(self.limit, 6)}"

    def shown(self, value: float, digits: int = 4) -> str:
        """A value of the quantity as people read it: shares in per cent."""
        if self.quantity in _SHARES:
            return f"{100 * value:.{digits}g}%"
        return f"{value:.{digits}g}"

    def judge(self, value: float | None, why: str = "there is no value") -> Verdict:
        """Decide it for a value of its quantity; `why` says why there is none."""
        if value is None or math.isnan(value):
            return Verdict(self, None, None, why)
        holds = value < self.limit if self.operator == "<" else value > self.limit
        return Verdict(self, holds, value)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a condition."""

    condition: Condition
    holds: bool | None
    """None if it cannot be decided."""
    value: float | None
    why: str = ""
    """Why it cannot be decided."""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.condition} cannot be decided: {self.why}"
        said = "holds" if self.holds else "does not hold"
        return f"{self.condition} {said}: it is {self.condition.shown(self.value)}"


def parse_condition(
    text: str, columns: Mapping[str, Column], default: Literal["mean", "difference"]
) -> Condition:
    """Read `cosine < 0.3`, `percentile(density) < 40`, `unscored(bleu) > 5%` or `skipped > 1%`.

    A column by itself means its `default`; there are differences only where that is one.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise CauserieError(
            f"the condition {text!r} cannot be read: write COLUMN < NUMBER, COLUMN > NUMBER or, "
            "instead of the column, QUANTITY(COLUMN) or skipped"
        )
    column = match["inner"] or match["bare"]
    quantity = match["quantity"] or default
    if match["bare"] == "skipped" and "skipped" not in columns:
        quantity, column = "skipped", None
    known = [q for q in get_args(Quantity) if q != "difference" or default == "difference"]
    if quantity not in known or (quantity == "skipped" and column is not None):
        raise CauserieError(
            f"the condition {text!r} is about {quantity}(...), which is not there: use "
            f"{', '.join(f'{q}(COLUMN)' for q in known if q != 'skipped')} or skipped"
        )
    if column is not None and column not in columns:
        raise CauserieError(
            f"the condition {text!r} is about {column!r}, which is not scored: "
            f"use one of {', '.join(columns)}"
        )
    if quantity == "percentile" and not columns[str(column)].calibrated:
        have = [name for name, one in columns.items() if one.calibrated]
        raise CauserieError(
            f"the condition {text!r} is about percentiles, which {column} does not have: "
            + (f"use one of {', '.join(have)}" if have else "none of the metrics has them")
        )
    limit = _limit(text, match["limit"], bool(match["percent"]), quantity)
    operator = cast("Operator", match["operator"])
    return Condition(cast("Quantity", quantity), column, operator, limit)


def _limit(text: str, written: str, percent: bool, quantity: str) -> float:
    try:
        limit = float(written)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise CauserieError(
            f"the condition {text!r} compares with {written!r}: write a number there"
        )
    if percent and quantity != "percentile":
        limit /= 100
    if quantity in _SHARES and not 0 <= limit <= 1:
        raise CauserieError(
            f"the condition {text!r} is about a share, which is between 0 and 1: "
            f"write {written}% for per cent"
        )
    return limit


def exit_status(verdicts: Iterable[Verdict], skipped: bool) -> int:
    """Return 3 where a condition holds, 2 where one cannot be decided, otherwise 1 or 0.

    It is 1 where something was skipped.
    """
    outcomes = [verdict.holds for verdict in verdicts]
    if any(outcomes):
        return FAILED
    return 2 if None in outcomes else int(skipped)


def conclude(
    plan: Plan,
    verdicts: Sequence[Verdict],
    unscored: Mapping[str, Iterable[str]],
    *,
    skipped: bool,
    say: Callable[[str], None],
) -> int:
    """Say what failed and which metrics scored nothing, and return the exit status.

    `unscored` has the columns without any score, and why. `CauserieError` if nothing but sentinels
    scored anything, unless a condition holds.
    """
    for verdict in verdicts:
        if verdict.holds is not False:
            say(f"{'failed' if verdict.holds else 'error'}: {verdict}")
    silent = [a for a in plan.metrics if plan.columns_of(a).keys() <= unscored.keys()]
    for alias in silent:
        why = dict.fromkeys(reason for name in plan.columns_of(alias) for reason in unscored[name])
        say(f"warning: {alias} scored nothing: {'; '.join(why)}")
    status = exit_status(verdicts, skipped or bool(silent))
    if status != FAILED and _serious(plan) <= set(silent):
        raise CauserieError(
            f"nothing was scored by {', '.join(silent)}: choose other metrics, or give what they "
            "need (see above)"
        )
    return status


def _serious(plan: Plan) -> set[str]:
    """The metrics that are no sentinels; all, if there are only such."""
    serious = {
        alias
        for alias in plan.metrics
        if not all(column.sentinel for column in plan.columns_of(alias).values())
    }
    return serious or set(plan.metrics)


def write_junit(path: Path, name: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as a test suite in JUnit's XML: a condition that holds is a failure."""
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(name),
        tests=str(len(verdicts)),
        failures=str(sum(v.holds is True for v in verdicts)),
        errors=str(sum(v.holds is None for v in verdicts)),
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(name), name=_xml(f"not {verdict.condition}")
        )
        if verdict.holds is not False:
            kind = "error" if verdict.holds is None else "failure"
            ElementTree.SubElement(case, kind, message=_xml(str(verdict)))
    ElementTree.indent(suite)
    body = ElementTree.tostring(suite, encoding="unicode")
    write_whole(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n')


def _xml(text: str) -> str:
    """The text without the characters that XML cannot hold at all; the rest is escaped later."""
    return _NOT_XML.sub("�", text)
