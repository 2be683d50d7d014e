"""Assertions with statistics, for a chatbot's own tests.

A difference between two versions of a bot is noise until its interval says otherwise. These
assertions compare the replies of both as `causerie.compare` does (in pairs where they answer the
same, whole dialogues together) and decide by the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.bench.compare import ColumnComparison, CompareResult
    from causerie.metrics.base import Metric


FEWEST = 6
"""Dialogues (or contexts) of either side: an interval over fewer is too narrow to decide by."""
_OTHERS = ("speaker", "options", "columns", "settings", "engines", "store", "seed", "watch")


def assert_better(
    new: object,
    old: object,
    metric: str | Metric = "density",
    margin: float = 0.0,
    confidence: float = 0.95,
    *,
    column: str | None = None,
    **others: Any,
) -> ColumnComparison:
    """Assert that the new replies are better than the old ones by more than a margin.

    That is so if the whole interval of the difference lies beyond the margin. `new` and `old` are
    whatever `causerie.evaluate` takes, at least six dialogues or contexts each; `column` says
    which, of a metric with several; `others` (`speaker`, `options`, `columns`, `settings`,
    `engines`, `store`, `seed`) are those of `causerie.compare`. Returns what was found. What cannot
    be compared is a `CauserieError`, not a failed assertion.
    """
    result, found = _compared(new, old, metric, margin, confidence, column, others)
    if not _surely(found) > margin:
        said = f"new is not surely better than old by more than {margin:g}"
        raise AssertionError(_message(said, result, found, confidence))
    return found


def assert_no_worse(
    new: object,
    old: object,
    metric: str | Metric = "density",
    *,
    margin: float,
    confidence: float = 0.95,
    column: str | None = None,
    **others: Any,
) -> ColumnComparison:
    """Assert that the new replies are not worse than the old ones by more than a margin.

    That is so if no part of the interval of the difference is worse than the margin: with few
    replies it may fail though nothing got worse, because nothing is known. The arguments are
    those of `assert_better`.
    """
    result, found = _compared(new, old, metric, margin, confidence, column, others)
    if not _surely(found) >= -margin:
        said = f"new may be worse than old by more than {margin:g}"
        raise AssertionError(_message(said, result, found, confidence))
    return found


def _compared(
    new: object,
    old: object,
    metric: str | Metric,
    margin: float,
    confidence: float,
    column: str | None,
    others: Mapping[str, Any],
) -> tuple[CompareResult, ColumnComparison]:
    from causerie.bench.compare import compare

    if unknown := [name for name in others if name not in _OTHERS]:
        known = ", ".join(("metric", "margin", "confidence", "column", *_OTHERS))
        raise CauserieError(f"an assertion has no argument {unknown[0]!r}: use one of {known}")
    if not (isinstance(margin, Real) and margin >= 0):
        raise CauserieError(f"margin is a number, 0 or more, not {margin!r}")
    result = compare(old, new, metric, confidence=confidence, **others)
    return result, _column(result, column)


def _column(result: CompareResult, name: str | None) -> ColumnComparison:
    """The column that decides, if something can be said by it."""
    if name is None and len(result.columns) > 1:
        known = ", ".join(one.column for one in result.columns)
        raise CauserieError(f"an assertion is about one column: say which with column=, of {known}")
    found = result.columns[0] if name is None else result.column(name)
    if found.better is None:
        raise CauserieError(f"neither end of {found.column} is the better one: take another metric")
    if found.difference.low is None or found.difference.high is None:
        raise CauserieError(
            f"the replies cannot be compared by {found.column}: {found.difference.reason}"
        )
    if min(found.clusters_a, found.clusters_b) < FEWEST:
        raise CauserieError(
            f"an assertion takes at least {FEWEST} dialogues or contexts with a score by "
            f"{found.column} on either side, not {found.clusters_a} old and {found.clusters_b} "
            "new ones: add more"
        )
    return found


def _surely(found: ColumnComparison) -> float:
    """The least improvement that the interval allows, on a scale where more is better."""
    low, high = found.difference.low or 0.0, found.difference.high or 0.0
    return low if found.better == "higher" else -high


def _message(said: str, result: CompareResult, found: ColumnComparison, confidence: float) -> str:
    difference = found.difference
    over = f"{result.pairs} pairs" if result.pairs is not None else f"{difference.n} replies"
    lines = [
        f"{said}, by {found.name}: difference {difference.value:+.4g}, "
        f"{100 * confidence:g}% interval {difference.low:+.4g} to {difference.high:+.4g}",
        f"n = {over} (old: {result.a.dialogues} dialogues, new: {result.b.dialogues}); "
        f"mean of old {found.mean_a:.4g}, of new {found.mean_b:.4g}",
    ]
    if found.examples:
        what = "differ most" if result.pairs is not None else "are worst"
        lines.append(f"replies that {what} (a is old, b is new):")
        lines += [line for example in found.examples for line in example.lines()]
    return "\n".join(lines)
