"""Distributions of scores, the matrix of wins, and the points for the scatter plots."""

from __future__ import annotations

from html import escape
from typing import Any

from causerie.bench.page.findings import Finding, label, main, measured, metric_name, readable
from causerie.bench.results import Histogram, SetResult
from causerie.render.numbers import brief
from causerie.render.page import outside
from causerie.render.svg import drawing, outline

WIDTH, HEIGHT = 180, 56


def distributions(found: SetResult) -> str:
    """Return small histograms of the human judgements and of every metric's scores."""
    people = (
        f'<span class="metric">people</span> <span class="tag">{outside(found.dimension)}</span>'
    )
    cards = [_card(people, "people", found.judgement_histogram, "people")]
    for row in found.rows:
        histogram = found.histograms.get(row.column, Histogram((), ()))
        cards.append(_card(metric_name(row), row.column, histogram, "scores"))
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(title: str, spoken: str, histogram: Histogram, kind: str) -> str:
    caption = f"<figcaption>{title}</figcaption>"
    edges, counts = histogram.edges, histogram.counts
    if not edges or not any(counts):
        return f'<figure class="card">{caption}<p class="quiet">nothing scored</p></figure>'
    bars = outline(counts, max(counts), left=0, right=WIDTH, top=2, floor=HEIGHT)
    parts = [f'<path d="{bars}"/>', f'<path class="base" d="M0 {HEIGHT}H{WIDTH}"/>']
    first, last = brief(edges[0]), brief(edges[-1])
    said = f"{spoken}: {sum(counts):,} values from {first} to {last}"
    return (
        f'<figure class="card">{caption}'
        f"{drawing(WIDTH, HEIGHT, parts, kind=kind, spoken=said)}"
        f'<div class="ends"><span>{first}</span><span>{last}</span></div></figure>'
    )


def wins_matrix(found: SetResult) -> str:
    """Return a matrix of significant wins between metrics, in ranking order."""
    if found.fails:
        return '<p class="quiet">The judgements fail the gate: nobody wins.</p>'
    tests = found.significance
    shown = [row for row in found.rows if row.column in tests.columns]
    if len(shown) < 2:
        return '<p class="quiet">There are no two metrics to compare.</p>'
    place = [tests.columns.index(row.column) for row in shown]
    heads = "".join(
        f'<th scope="col"><abbr title="{escape(row.column)}">{n}</abbr></th>'
        for n, row in enumerate(shown, 1)
    )
    lines = []
    for n, row in enumerate(shown, 1):
        cells = "".join(
            _win(row.column, other.column, tests.p[place[n - 1]][j], tests.wins[place[n - 1]][j])
            for other, j in zip(shown, place, strict=True)
        )
        kind = "sentinel" if row.sentinel else ""
        lines.append(
            f'<tr class="{kind}"><th scope="row"><span class="nth">{n}</span> {outside(row.column)}'
            f"</th>{cells}</tr>"
        )
    return readable(
        '<table class="wins grid" role="grid">'
        f'<caption class="unseen">Significant wins on {escape(found.title)}</caption>'
        f'<thead><tr><th scope="col">better ╲ than</th>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _win(row: str, other: str, p: float | None, wins: bool) -> str:
    if row == other:
        return '<td class="self" title="the same metric"></td>'
    chance = "not tested" if p is None else f"p {'&lt; 0.001' if p < 0.001 else f'= {p:.3f}'}"
    verdict = "is significantly better than" if wins else "is not significantly better than"
    said = f"{escape(row)} {verdict} {escape(other)}: {chance}"
    return f'<td class="win" title="{said}">▲</td>' if wins else f'<td title="{said}">·</td>'


def scatter_data(found: SetResult, finding: Finding) -> dict[str, Any]:
    """Return the data of one set for the script: points, and the description of each metric."""
    sample = found.sample
    chosen = finding.best or finding.sentinel
    return {
        "across": "votes" if found.level == "pair" else f"mean rating, {found.dimension}",
        "human": [_short(value) for value in sample.judgement],
        "written": list(sample.human_written),
        "points": [f"{i} · {s}" for i, s in zip(sample.ids, sample.systems, strict=True)],
        "chosen": chosen.column if chosen else None,
        "metrics": [
            {
                "name": row.column,
                "higher": row.higher_is_better,
                "said": f"{label(found.main, found.level)} {measured(main(row, found))}",
                "scores": [_short(value) for value in sample.scores[row.column]],
            }
            for row in found.rows
            if any(value is not None for value in sample.scores.get(row.column, ()))
        ],
    }


def _short(value: float | None) -> float | None:
    """Round to as many digits as a dot on a screen needs."""
    return None if value is None else float(f"{value:.5g}")
