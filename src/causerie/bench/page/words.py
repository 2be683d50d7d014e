"""Estimates, metrics and statistics in words, as the page has them."""

from __future__ import annotations

from causerie.bench.results import PAIR_STATISTICS, STATISTICS, MetricRow, RunResult
from causerie.render.numbers import counted, listed, number
from causerie.render.page import column_name
from causerie.stats import Estimate

_SHORT = {"accuracy": "acc*", "within-context-accuracy": "acc* within context", "system": "SPA"}
NOTHING = Estimate(None, 0, reason="not computed")


def interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{number(estimate.low, 2)} to {number(estimate.high, 2)}"


def measured(estimate: Estimate) -> str:
    """The value with its interval in brackets, or why there is none; plain text."""
    if estimate.value is None:
        return f"no number: {estimate.reason or 'no reason given'}"
    around = f" (95% interval {interval(estimate)})" if interval(estimate) else ""
    return number(estimate.value) + around


def metric_name(row: MetricRow) -> str:
    return column_name(row.column, higher_is_better=row.higher_is_better, sentinel=row.sentinel)


def readable(table: str) -> str:
    """A grid that may be wider than the window, and the line where its cells are read out."""
    return (
        f'<div class="readable"><div class="scroll">{table}</div>'
        '<p class="readout quiet" role="status"></p></div>'
    )


def family(statistic: str) -> str:
    """What a statistic of pairs has in common with one of responses: its last name."""
    return statistic.rsplit(".", 1)[-1]


def label(statistic: str, level: str = "turn") -> str:
    """A statistic in words, as it is meant for sets of this level."""
    meant = PAIR_STATISTICS if level == "pair" else STATISTICS
    return meant.get(statistic, statistic)


def short_label(statistic: str) -> str:
    """For the head of a narrow column."""
    if statistic in _SHORT:
        return _SHORT[statistic]
    return statistic.replace(".", " ").replace("-", " ")


def chance(statistic: str) -> float:
    """What a metric that knows nothing gets."""
    return 0.5 if statistic in ("accuracy", "within-context-accuracy", "system") else 0.0


def extent(result: RunResult) -> str:
    """What was measured on what, as one sentence."""
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
