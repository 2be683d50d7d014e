"""The ranking table of one set: metrics with intervals, cost, and reasons for missing numbers."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from causerie.bench.page.findings import (
    NOTHING,
    Finding,
    chance,
    interval,
    label,
    main,
    measured,
    metric_name,
    readable,
    short_label,
)
from causerie.bench.page.heat import CEILING
from causerie.bench.results import MetricRow, SetResult
from causerie.render.numbers import brief, number
from causerie.render.svg import IntervalChart
from causerie.stats import Estimate

WIDTH, HEIGHT = 170, 38


def ranking_table(found: SetResult, finding: Finding) -> str:
    """Return the table: people on top, and sentinels ranked among the metrics."""
    ceiling = found.ceiling.get(found.main, NOTHING)
    estimates = [ceiling, *(main(row, found) for row in found.rows)]
    chart = IntervalChart.around(estimates, chance(found.main), WIDTH, HEIGHT)
    guides = chart.line(chance(found.main), "chance") + chart.line(ceiling.value, "to-ceiling")
    if finding.sentinel:
        guides += chart.line(main(finding.sentinel, found).value, "to-sentinel")
    person = chart.draw([guides, chart.mark(ceiling, "ceiling")])
    lines = [
        f'<tr class="ceiling"><td></td><th scope="row">{CEILING}</th>'
        f"{_numbers(found, 'one person', found.ceiling, person)}<td></td><td></td><td></td></tr>"
    ]
    before = None
    for row in found.rows:
        kinds = ["sentinel"] * row.sentinel + ["opens"] * (row.cluster != before)
        mark = chart.mark(main(row, found), "sentinel" if row.sentinel else "metric")
        lines.append(
            f'<tr class="{" ".join(kinds)}">{_rank(row)}<th scope="row">{metric_name(row)}</th>'
            f"{_numbers(found, row.column, row.statistics, chart.draw([guides, mark]))}"
            f"{_cost(row)}</tr>"
        )
        before = row.cluster
    return readable(
        '<table class="ranking grid" role="grid">'
        f'<caption class="unseen">Ranking on {escape(found.title)}</caption>'
        f"<thead>{_head(found, chart)}</thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _head(found: SetResult, chart: IntervalChart) -> str:
    first, *others = (
        f'<th scope="col"><abbr title="{escape(label(s, found.level))}">{escape(short_label(s))}'
        "</abbr></th>"
        for s in found.statistics
    )
    return (
        f'<tr><th scope="col">rank</th><th scope="col">metric</th>{first}'
        f'<th class="drawn"><span class="unseen">the same, drawn</span>{chart.ticks()}</th>'
        f"{''.join(others)}"
        '<th scope="col"><abbr title="seconds per 1,000 turns">s per 1,000</abbr></th>'
        '<th scope="col"><abbr title="share of inputs cut to the window">cut</abbr></th>'
        '<th scope="col">unscored</th></tr>'
    )


def _rank(row: MetricRow) -> str:
    if row.cluster is None:
        return '<td class="rank" title="not ranked: no value">–</td>'
    return f'<td class="rank" title="rank {row.cluster}">{row.cluster}</td>'


def _numbers(found: SetResult, who: str, statistics: Mapping[str, Estimate], drawing: str) -> str:
    """Return cells: the main statistic with its interval and chart, the others with tooltips."""
    cells = []
    for statistic in found.statistics:
        estimate = statistics.get(statistic, NOTHING)
        said = escape(f"{who}: {label(statistic, found.level)} {measured(estimate)}")
        if statistic == found.main:
            cells.append(_main(estimate, said))
            cells.append(f'<td class="drawn" title="{said}">{drawing}</td>')
        elif estimate.value is None:
            cells.append(f'<td class="none" title="{said}">–</td>')
        else:
            cells.append(f'<td title="{said}, n = {estimate.n:,}">{number(estimate.value, 2)}</td>')
    return "".join(cells)


def _main(estimate: Estimate, said: str) -> str:
    if estimate.value is None:
        reason = escape(estimate.reason or "no reason given")
        return f'<td class="why" title="{said}"><small>{reason}</small></td>'
    note = interval(estimate) or "no interval"
    return (
        f'<td title="{said}, n = {estimate.n:,}"><b>{number(estimate.value)}</b>'
        f"<small>{note}</small></td>"
    )


def _cost(row: MetricRow) -> str:
    seconds, cut, unscored = "–", "–", "0"
    if row.seconds_per_1000 is not None:
        seconds = _seconds(row.seconds_per_1000)
    if row.truncated is not None:
        cut = f"{row.truncated:.1%}"
    if row.unscored:
        reasons = "".join(
            f"<li>{count:,}: {escape(reason)}</li>" for reason, count in row.unscored.items()
        )
        unscored = (
            f"<details><summary>{sum(row.unscored.values()):,}</summary>"
            f"<ul>{reasons}</ul></details>"
        )
    said = (
        f"{escape(row.column)}: {seconds} seconds per 1,000 turns, {cut} of the inputs cut, "
        f"{row.scored:,} scored"
    )
    return (
        f'<td title="{said}">{seconds}</td><td title="{said}">{cut}</td>'
        f'<td title="{said}">{unscored}</td>'
    )


def _seconds(seconds: float) -> str:
    if seconds >= 10:
        return brief(seconds)
    return f"{seconds:.2f}" if seconds >= 0.01 else "&lt; 0.01"
