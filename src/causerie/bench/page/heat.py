"""Heat maps: tables whose cells are coloured by how far a statistic is from chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from causerie.bench.page.findings import (
    NOTHING,
    chance,
    family,
    label,
    measured,
    metric_name,
    readable,
)
from causerie.bench.results import STATISTICS, RunResult, SetResult
from causerie.render.numbers import number
from causerie.render.page import outside
from causerie.stats import Estimate

LOWEST, HIGHEST = -5, 8
"""Range of the steps (tenths) that have a colour of their own, also in the style sheet."""
CEILING = '<span class="metric">one person</span> <span class="tag">ceiling</span>'

_NOT_RUN = Estimate(None, 0, reason="this metric was not run on this set")
_OTHER_KIND = Estimate(None, 0, reason="this statistic does not apply to sets of this kind")


@dataclass(frozen=True)
class _Cell:
    statistic: str
    level: str
    estimate: Estimate


@dataclass(frozen=True)
class _Head:
    html: str
    spoken: str
    kind: str = ""
    """Class of a row that is not a metric: "ceiling" or "sentinel"."""


def heat_maps(result: RunResult) -> dict[str, str]:
    """Return a metric-by-set table per statistic, by label; the first set's main one is first."""
    families: dict[str, str] = {}
    for found in result.sets:
        for statistic in found.statistics:
            kin = family(statistic)
            families.setdefault(kin, STATISTICS.get(kin, label(statistic, found.level)))
    return {text: _by_set(result, kin, text) for kin, text in families.items()}


def _by_set(result: RunResult, kin: str, caption: str) -> str:
    heads = [
        _Head(
            f'<a href="#set-{index}">{outside(found.title)}</a>'
            f" <small>{outside(found.dimension)}{' · fails the gate' * found.fails}</small>",
            f"{found.title}, {found.dimension}",
        )
        for index, found in enumerate(result.sets)
    ]
    keys = [next((k for k in found.statistics if family(k) == kin), None) for found in result.sets]

    def cells(values: Sequence[Mapping[str, Estimate]], absent: Estimate) -> list[_Cell]:
        return [
            _Cell(key or kin, found.level, value.get(key, absent) if key else _OTHER_KIND)
            for found, key, value in zip(result.sets, keys, values, strict=True)
        ]

    people = cells([found.ceiling for found in result.sets], NOTHING)
    lines = [(_Head(CEILING, "one person", "ceiling"), people)]
    for column in result.columns():
        rows = [found.row(column) for found in result.sets]
        first = next(row for row in rows if row)
        head = _Head(metric_name(first), column, "sentinel" if first.sentinel else "")
        lines.append((head, cells([row.statistics if row else {} for row in rows], _NOT_RUN)))
    return _table(caption, heads, lines)


def by_dimension(found: SetResult) -> str:
    """Return a metric-by-dimension table of one set, or nothing if it has only one dimension."""
    dimensions = list(dict.fromkeys(d for row in found.rows for d in row.dimensions))
    if len(dimensions) < 2:
        return ""
    lines = [
        (
            _Head(metric_name(row), row.column, "sentinel" if row.sentinel else ""),
            [
                _Cell(found.main, found.level, row.dimensions.get(d, {}).get(found.main, NOTHING))
                for d in dimensions
            ],
        )
        for row in found.rows
    ]
    caption = f"{label(found.main, found.level)} for every dimension of {found.title}"
    return _table(caption, [_Head(outside(d), d) for d in dimensions], lines)


def _table(caption: str, heads: list[_Head], lines: list[tuple[_Head, list[_Cell]]]) -> str:
    """Return a table to navigate with the arrow keys; the script reads out the title of a cell."""
    values = [[cell.estimate.value for cell in cells] for row, cells in lines if not row.kind]
    best = [
        max((v for v in column if v is not None), default=None)
        for column in (zip(*values, strict=True) if values else [()] * len(heads))
    ]
    columns = "".join(f'<th scope="col">{head.html}</th>' for head in heads)
    body = "".join(
        f'<tr class="{row.kind}"><th scope="row">{row.html}</th>'
        + "".join(
            _cell_html(cell, f"{row.spoken} on {head.spoken}", None if row.kind else top)
            for cell, head, top in zip(cells, heads, best, strict=True)
        )
        + "</tr>"
        for row, cells in lines
    )
    return readable(
        f'<table class="heat grid" role="grid"><caption class="unseen">{escape(caption)}</caption>'
        f'<thead><tr><th scope="col">metric</th>{columns}</tr></thead><tbody>{body}</tbody></table>'
    )


def _cell_html(cell: _Cell, where: str, best: float | None) -> str:
    value = cell.estimate.value
    said = escape(f"{where}: {label(cell.statistic, cell.level)} {measured(cell.estimate)}")
    if value is None:
        return f'<td class="none" title="{said}">–</td>'
    strong = ' class="best"' if value == best else ""
    return (
        f'<td{strong} data-step="{step(cell.statistic, value)}"'
        f' title="{said}, n = {cell.estimate.n:,}">{number(value, 2)}</td>'
    )


def step(statistic: str, value: float) -> int:
    """Return tenths of the way from chance (0) to full agreement (10), clipped to the colours."""
    zero = chance(statistic)
    return max(LOWEST, min(HIGHEST, round(10 * (value - zero) / (1 - zero))))
