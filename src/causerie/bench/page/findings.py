"""What a set shows, in a sentence or two: the best metric, the sentinels, the human ceiling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from causerie.bench.page.words import NOTHING, chance, interval, label
from causerie.bench.results import MetricRow, RunResult, SetResult
from causerie.render.numbers import listed, number
from causerie.render.page import outside
from causerie.stats import Estimate


def main(row: MetricRow, found: SetResult) -> Estimate:
    """A row's value of the statistic that its set is ranked by."""
    return row.statistics.get(found.main, NOTHING)


@dataclass(frozen=True)
class Finding:
    """The two rows that matter most on a set, and whether their difference is real."""

    best: MetricRow | None
    """The best metric that is no sentinel; None if none has a number."""
    sentinel: MetricRow | None
    """The best sentinel."""
    beats_sentinels: bool
    """Whether the best metric is significantly better than each sentinel that has a number."""

    @classmethod
    def of(cls, found: SetResult) -> Finding:
        measured = [row for row in found.rows if main(row, found).value is not None]
        best = _largest((row for row in measured if not row.sentinel), found)
        sentinels = [row for row in measured if row.sentinel]
        beats = best is not None and all(_wins(found, best, other) for other in sentinels)
        return cls(best, _largest(sentinels, found), beats and bool(sentinels))


def _largest(rows: Iterable[MetricRow], found: SetResult) -> MetricRow | None:
    return max(rows, key=lambda row: main(row, found).value or 0.0, default=None)


def _wins(found: SetResult, row: MetricRow, other: MetricRow) -> bool:
    columns = found.significance.columns
    if row.column not in columns or other.column not in columns:
        return False
    return found.significance.wins[columns.index(row.column)][columns.index(other.column)]


def sentence(found: SetResult, finding: Finding) -> str:
    """The finding as HTML."""
    ceiling = found.ceiling.get(found.main, NOTHING)
    if ceiling.value is None:
        person = f"There is no human ceiling: {escape(ceiling.reason or 'not computed')}."
    else:
        noted = " (see the notes)" * (number(ceiling.value) == "1.000")
        person = f"One person in a metric's place reaches {number(ceiling.value)}{noted}."
    return " ".join([_of_the_best(found, finding), *_of_sentinels(found, finding), person])


def _of_the_best(found: SetResult, finding: Finding) -> str:
    if finding.best is None:
        reasons = [main(row, found).reason for row in found.rows if not row.sentinel]
        reason = next((r for r in reasons if r), "none was run")
        return f"No metric has a number here: {escape(reason)}."
    best = main(finding.best, found)
    who = f"<b>{outside(finding.best.column)}</b>"
    around = f" ({interval(best)})" if interval(best) else ""
    reached = f"{escape(label(found.main, found.level))} {number(best.value)}{around}"
    if best.value is None or best.value <= chance(found.main):
        return f"No metric agrees with people: the best, {who}, has {reached}."
    equals = [
        f"<b>{outside(row.column)}</b>"
        for row in found.rows
        if row.cluster == finding.best.cluster is not None
        and not row.sentinel
        and row is not finding.best
    ]
    shared = ""
    if 0 < len(equals) <= 2:
        shared = f", in one rank with {listed(equals)}"
    elif equals:
        shared = f", in one rank with {len(equals)} others"
    return f"{who} agrees best with people{shared}: {reached}."


def _of_sentinels(found: SetResult, finding: Finding) -> list[str]:
    if finding.best is None:
        return []
    if finding.sentinel is None:
        return ["No sentinel has a number to compare with."]
    value, best = main(finding.sentinel, found).value or 0.0, main(finding.best, found).value or 0.0
    trivial = f"<b>{outside(finding.sentinel.column)}</b> ({number(value)})"
    if finding.beats_sentinels:
        return [f"It is significantly better than every sentinel, the best of which is {trivial}."]
    if value >= best:
        return [f"<strong>The sentinel {trivial} is no worse.</strong>"]
    return [
        "<strong>It is not significantly better than every sentinel</strong>; "
        f"the best of them is {trivial}."
    ]


def overall(result: RunResult) -> str:
    """On how many sets anything beats the sentinels; plain text."""
    beaten = sum(Finding.of(found).beats_sentinels for found in result.sets)
    total = len(result.sets)
    if not total:
        return "No set was measured."
    on = "On the one set" if total == 1 else f"On {beaten or 'none'} of {total} sets"
    verb = "is" if total > 1 or beaten else "is not"
    return f"{on} the best metric {verb} significantly better than every sentinel."
