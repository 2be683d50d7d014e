"""Numbers, names and statistics in words; whatever comes from outside is escaped here."""

from __future__ import annotations

import math
from html import escape

from causerie.bench.results import PAIR_STATISTICS, STATISTICS, MetricRow, RunResult
from causerie.stats import Estimate

_SHORT = {"accuracy": "acc*", "within-context-accuracy": "acc* within context", "system": "SPA"}
NOTHING = Estimate(None, 0, reason="not computed")


def number(value: float | None, digits: int = 3) -> str:
    """With a real minus sign, never minus zero; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if not float(text) else text).replace("-", "−")


def brief(value: float) -> str:
    """Three digits of a number on any scale."""
    digits = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return digits.replace("-", "−")


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


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(parts: list[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), *parts[-1:]])


def name(text: str) -> str:
    """A name from outside as HTML that keeps its own writing direction to itself."""
    return f"<bdi>{escape(text)}</bdi>"


def metric_name(row: MetricRow) -> str:
    words = "higher is better" if row.higher_is_better else "lower is better"
    arrow = "↑" if row.higher_is_better else "↓"
    tag = ' <span class="tag">sentinel</span>' if row.sentinel else ""
    return (
        f'<span class="metric">{name(row.column)}</span> <span class="arrow" role="img"'
        f' title="{words}" aria-label="{words}">{arrow}</span>{tag}'
    )


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
