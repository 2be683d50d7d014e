"""Results of a set in words: estimates, names, and a few sentences on the findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from causerie.bench.results import PAIR_STATISTICS, STATISTICS, MetricRow, RunResult, SetResult
from causerie.render.numbers import counted, listed, number
from causerie.render.page import column_name, outside
from causerie.stats import Estimate

_SHORT = {"accuracy": "acc*", "within-context-accuracy": "acc* within context", "system": "SPA"}
NOTHING = Estimate(None, 0, reason="not computed")


def interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{number(estimate.low, 2)} to {number(estimate.high, 2)}"


def measured(estimate: Estimate) -> str:
    """Return the value with its interval in brackets, or why there is none, as plain text."""
    if estimate.value is None:
        return f"no number: {estimate.reason or 'no reason given'}"
    around = f" (95% interval {interval(estimate)})" if interval(estimate) else ""
    return number(estimate.value) + around


def metric_name(row: MetricRow) -> str:
    return column_name(row.column, higher_is_better=row.higher_is_better, sentinel=row.sentinel)


def readable(table: str) -> str:
    """Wrap a grid that may be wider than the window, with a line that reads its cells out."""
    return (
        f'<div class="readable"><div class="scroll">{table}</div>'
        '<p class="readout quiet" role="status"></p></div>'
    )


def family(statistic: str) -> str:
    """Return the last part of a statistic's name, which pairs and responses have in common."""
    return statistic.rsplit(".", 1)[-1]


def label(statistic: str, level: str = "turn") -> str:
    """Return the description of a statistic for sets of this level."""
    meant = PAIR_STATISTICS if level == "pair" else STATISTICS
    return meant.get(statistic, statistic)


def short_label(statistic: str) -> str:
    """Return a short name of a statistic for the head of a narrow column."""
    if statistic in _SHORT:
        return _SHORT[statistic]
    return statistic.replace(".", " ").replace("-", " ")


def chance(statistic: str) -> float:
    """Return the expected value of an uninformative metric."""
    return 0.5 if statistic in ("accuracy", "within-context-accuracy", "system") else 0.0


def extent(result: RunResult) -> str:
    """Return a sentence on the metrics and sets of the run."""
    sentinels = sum(facts.sentinel for facts in result.metrics)
    what = [
        counted(len(result.metrics) - sentinels, "metric"),
        counted(sentinels, "sentinel"),
    ]
    sizes: dict[str, int] = {}
    for found in result.sets:
        noun = "dialogue" if found.level == "dialogue" else "response"
        sizes[noun] = sizes.get(noun, 0) + found.items
    of = listed([counted(count, noun) for noun, count in sizes.items()])
    where = counted(len(result.sets), "judged set") + (f" ({of})" if of else "")
    return f"{listed(what)} against human judgement on {where}."


def main(row: MetricRow, found: SetResult) -> Estimate:
    """Return a row's value of the statistic that its set is ranked by."""
    return row.statistics.get(found.main, NOTHING)


@dataclass(frozen=True)
class Finding:
    """The two most important rows of a set, and whether their difference is real."""

    best: MetricRow | None
    """The best metric that is not a sentinel; None if none has a number."""
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
    """Return the finding as HTML; for a set that fails the gate, only why it fails."""
    if found.fails:
        why = escape("; ".join(found.reliability.failures))
        return (
            "<strong>These judgements fail the reliability gate</strong>, so no number here says "
            f"anything about a metric: {why}."
        )
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
    """Return on how many sets a metric beats all sentinels, as plain text."""
    sound = [found for found in result.sets if not found.fails]
    beaten, total = sum(Finding.of(found).beats_sentinels for found in sound), len(sound)
    failing = len(result.sets) - total
    gate = f" {counted(failing, 'set')} not counted: the judgements fail the gate." * bool(failing)
    if not total:
        return f"No set was measured.{gate}" if not failing else gate.strip()
    on = "On the one set" if total == 1 else f"On {beaten or 'none'} of {total} sets"
    verb = "is" if total > 1 or beaten else "is not"
    return f"{on} the best metric {verb} significantly better than every sentinel.{gate}"
