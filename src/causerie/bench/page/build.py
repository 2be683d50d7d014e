"""The benchmark page, assembled from its parts and written to a file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

from causerie.bench.page.charts import distributions, scatter_data, wins_matrix
from causerie.bench.page.findings import (
    NOTHING,
    Finding,
    extent,
    label,
    main,
    measured,
    overall,
    sentence,
    short_label,
)
from causerie.bench.page.heat import by_dimension, heat_maps
from causerie.bench.page.ranking import ranking_table
from causerie.bench.results import RunResult, SetResult
from causerie.io import write_whole
from causerie.render.numbers import counted
from causerie.render.page import data_block, fill, outside, part
from causerie.render.svg import IntervalChart

STRIP = (340, 34)
MOST_PROBLEMS = 50


def write_page(path: Path, result: RunResult) -> None:
    """Write the page of `build_page` to a file, which appears complete or not at all."""
    write_whole(path, build_page(result))


def build_page(result: RunResult) -> str:
    """Return a self-contained HTML page about a run, which needs no network.

    Everything except the scatter plots is drawn here, so the page is readable without JavaScript.
    """
    findings = [Finding.of(found) for found in result.sets]
    maps = heat_maps(result)
    scatters = [scatter_data(s, f) for s, f in zip(result.sets, findings, strict=True)]
    return fill(
        "causerie.bench.page",
        title="Which metric agrees with people",
        extent=escape(extent(result)),
        overall=escape(overall(result)),
        made=escape(
            f"causerie {result.version}, {result.created}, {result.machine}; at most "
            f"{counted(result.options.max_items, 'item')} of a set"
        ),
        signature=escape(result.signature),
        findings=_findings(result, findings),
        choices="".join(f"<option>{escape(text)}</option>" for text in maps),
        maps="".join(
            f'<div class="map"{" hidden" * (i > 0)}>{table}</div>'
            for i, table in enumerate(maps.values())
        ),
        sets="".join(
            _set(i, s, f) for i, (s, f) in enumerate(zip(result.sets, findings, strict=True))
        ),
        resamples=f"{result.options.resamples:,}",
        permutations=f"{result.options.permutations:,}",
        statistics=_statistics(result),
        metrics=_metrics(result),
        data=data_block(scatters),
    )


def _findings(result: RunResult, findings: list[Finding]) -> str:
    """Return one sentence per set beside a chart of best metric, best sentinel and people."""
    drawn = [
        (NOTHING, NOTHING, NOTHING)
        if found.fails
        else (
            found.ceiling.get(found.main, NOTHING),
            main(finding.sentinel, found) if finding.sentinel else NOTHING,
            main(finding.best, found) if finding.best else NOTHING,
        )
        for found, finding in zip(result.sets, findings, strict=True)
    ]
    chart = IntervalChart.around((e for estimates in drawn for e in estimates), 0.0, *STRIP)
    items = []
    for index, (found, finding) in enumerate(zip(result.sets, findings, strict=True)):
        ceiling, sentinel, best = drawn[index]
        said = (
            f"{found.title}: best metric {measured(best)}; best sentinel {measured(sentinel)}; "
            f"one person {measured(ceiling)}"
        )
        marks = [
            chart.line(0.0, "chance"),
            chart.mark(ceiling, "ceiling"),
            chart.mark(sentinel, "sentinel"),
            chart.mark(best, "metric"),
        ]
        items.append(
            f'<li><div><h3><a href="#set-{index}">{outside(found.title)}</a> '
            f'<span class="tag">{outside(found.dimension)}</span></h3>'
            f"<p>{sentence(found, finding)}</p></div>{chart.draw(marks, said)}</li>"
        )
    if not items:
        return ""
    scale = f'<div class="scale">{chart.ticks()}</div>'
    return f'<div class="findings">{scale}<ol>{"".join(items)}</ol></div>'


def _set(index: int, found: SetResult, finding: Finding) -> str:
    units = {"turn": "response", "dialogue": "dialogue", "pair": "response"}
    facts = [counted(found.items, units[found.level])]
    if found.pairs:
        facts.append(counted(found.pairs, "pair"))
    if (found.pairs or found.items) < found.of_items:
        facts[-1] += f" of {found.of_items:,}"
    facts += [
        counted(
            found.clusters, f"independent {'dialogue' if found.level == 'dialogue' else 'context'}"
        ),
        counted(found.systems, "system"),
        f"{found.annotators or 'no known'} annotator{'s' * (found.annotators != '1')} an item",
        f"{found.human_written:,} human-written",
        f"annotators' alpha {measured(found.alpha)}"
        + " (see the notes)" * (found.alpha.value == 1),
        "alpha of an item's mean judgement " + measured(found.reliability.consistency),
    ]
    if found.level == "pair":
        facts.append(f"triples preferred in a circle {measured(found.reliability.cyclic)}")
    dimensions = by_dimension(found)
    if dimensions:
        dimensions = (
            f"<details><summary>{escape(label(found.main, found.level))} for every dimension of "
            f"this set</summary>{dimensions}</details>"
        )
    return Template(part("causerie.bench.page", "set.html")).substitute(
        index=index,
        title=outside(found.title),
        dimension=outside(found.dimension),
        sentence=sentence(found, finding),
        facts="".join(f"<li>{escape(fact)}</li>" for fact in facts),
        table=ranking_table(found, finding),
        wins=wins_matrix(found),
        statistic=escape(label(found.significance.statistic, found.level)),
        distributions=distributions(found),
        dimensions=dimensions,
        notes=_notes(found),
        licence=escape(found.licence),
        paper=escape(found.paper),
        url=escape(found.url),
        sha256=escape(found.sha256),
    )


def _notes(found: SetResult) -> str:
    """Return what a reader needs to know; problems with the file, often many, are collapsed."""
    items = [f"<li>{escape(note)}</li>" for note in found.notes]
    if found.problems:
        shown = [f"<li>{escape(problem)}</li>" for problem in found.problems[:MOST_PROBLEMS]]
        if found.problems[MOST_PROBLEMS:]:
            shown.append(f"<li>and {len(found.problems) - MOST_PROBLEMS:,} more</li>")
        items.append(
            f'<li class="problem"><details><summary>{counted(len(found.problems), "problem")} '
            f"with the file</summary><ul>{''.join(shown)}</ul></details></li>"
        )
    return f'<ul class="notes">{"".join(items)}</ul>' if items else ""


def _statistics(result: RunResult) -> str:
    used = {
        label(s, found.level): short_label(s) for found in result.sets for s in found.statistics
    }
    return "".join(f"<dt>{escape(s)}</dt><dd>{escape(text)}</dd>" for text, s in used.items())


def _metrics(result: RunResult) -> str:
    return "".join(
        f'<tr><th scope="row">{outside(facts.name)}'
        f"{' <span class=tag>sentinel</span>' * facts.sentinel}</th>"
        f"<td>{escape(facts.summary)}</td><td>{escape(', '.join(facts.needs)) or '–'}</td>"
        f"<td><code>{escape(facts.signature)}</code></td></tr>"
        for facts in result.metrics
    )
