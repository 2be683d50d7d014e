"""Output of benchmark runs, probes and rankings: a page, documents, tables and data.

`--out` is a folder or a file; a file's suffix says whether it is Markdown, LaTeX, CSV or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from causerie.bench.probe import ProbeResult, probe_markdown, probe_tables
from causerie.bench.ranking import (
    RankingResult,
    ranking_markdown,
    ranking_picture,
    ranking_tables,
)
from causerie.bench.results import (
    PAIR_STATISTICS,
    ROW_TYPES,
    STATISTICS,
    MetricRow,
    RunResult,
    SetResult,
    rows_of,
    to_json,
)
from causerie.io import write_table, write_whole
from causerie.render.numbers import NONE
from causerie.render.tables import (
    Cell,
    Marked,
    Table,
    check_suffix,
    markdown_code,
    markdown_table,
    markdown_text,
    write_tables,
)
from causerie.stats import Estimate

_HEADINGS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "kendall": "Kendall",
    "accuracy": "acc*",
    "within-context": "within context",
    "within-context-accuracy": "acc* within context",
    "system": "SPA",
    "system-means": "system means",
    "partial": "given length",
    "without-humans": "without humans",
    "voting.spearman": "Voting, Spearman",
    "voting.pearson": "Voting, Pearson",
    "ignore-equal.point-biserial": "IgnoreEqual",
    "cont2cat.alpha": "Cont2Cat",
}


def check_out(out: Path) -> bool:
    """Return whether `--out` names a folder; check a file's suffix before anything is scored."""
    if out.is_dir() or not out.suffix:
        return True
    check_suffix(out)
    return False


def write_results(result: RunResult, out: Path) -> list[Path]:
    """Write results.json, .parquet, .md and .html, or the one file that `out` names.

    Each file appears complete or not at all.
    """
    from causerie.bench.page import write_page

    if not check_out(out):
        return _write_file(out, run_tables(result), to_markdown(result), to_json(result))
    data, table, text, page = (out / f"results.{s}" for s in ("json", "parquet", "md", "html"))
    write_whole(data, to_json(result) + "\n")
    write_whole(text, to_markdown(result))
    write_table(rows_of(result), list(ROW_TYPES), table, ROW_TYPES)
    write_page(page, result)
    return [data, table, text, page]


def write_probe(result: ProbeResult, out: Path) -> list[Path]:
    """Write probe.json and probe.md, or the one file that `out` names."""
    content = json.dumps(asdict(result), ensure_ascii=False, allow_nan=False, indent=1)
    if not check_out(out):
        return _write_file(out, probe_tables(result), probe_markdown(result), content)
    data, text = (out / f"probe.{suffix}" for suffix in ("json", "md"))
    write_whole(data, content + "\n")
    write_whole(text, probe_markdown(result))
    return [data, text]


def write_ranking(result: RankingResult, out: Path) -> list[Path]:
    """Write ranking.md and ranking.svg, or the one file that `out` names."""
    if not check_out(out):
        return _write_file(out, ranking_tables(result), ranking_markdown(result))
    text, picture = out / "ranking.md", out / "ranking.svg"
    write_whole(text, ranking_markdown(result))
    write_whole(picture, ranking_picture(result))
    return [text, picture]


def _write_file(
    out: Path, tables: Iterable[Table], text: str, data: str | None = None
) -> list[Path]:
    """Write the tables in the format of the suffix; JSON has all the data, if given."""
    if data is not None and out.suffix.lower() == ".json":
        write_whole(out, data + "\n")
    else:
        write_tables(out, *tables, text=text)
    return [out]


def to_markdown(result: RunResult) -> str:
    """Return the whole run as Markdown; a missing number is a dash with its reason below."""
    parts = [
        "# How far the metrics agree with people",
        "Correlation of each metric with human judgement on judged sets, larger is better; "
        "scores of metrics where lower is better were negated first. *Sentinels* (in italics) "
        "are trivial: a metric that does not beat them has learned nothing about conversation. "
        "*Human* is one annotator against the mean of the others; *limit* is about the most any "
        "metric can reach, because the mean of a few annotators is noisy (square root of its "
        "split-half reliability); *floor* is what a metric that knows nothing gets, where that is "
        "not 0. No metric is significantly better than one below it in its rank (paired "
        "permutation of whole dialogues or contexts, Holm, 0.05).",
        "## Summary",
        "Main statistic of every set (Spearman's rho; of pairs, with the share of votes a "
        "response got). "
        "Bold: first rank, and the interval is above 0.",
        markdown_table(_summary(result)),
        _failing(result),
        *(_section(judged) for judged in result.sets),
        "## What the columns say",
        _glossary(result),
        "## How this was made",
        f"{result.created[:10]}, {markdown_text(result.machine)}.",
        "```\n" + result.signature.replace("`", "'") + "\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _failing(result: RunResult) -> str:
    """Return the sets that are not in the summary, and why."""
    return _bullets(
        f"{markdown_code(judged.name)} fails the reliability gate and is not in the summary: "
        f"{markdown_text('; '.join(judged.reliability.failures))}."
        for judged in result.sets
        if judged.fails
    )


def run_tables(result: RunResult) -> list[Table]:
    """Return the summary, and the table of every set."""
    return [_summary(result), *map(_set_table, result.sets)]


def _summary(result: RunResult) -> Table:
    sentinels = {facts.name for facts in result.metrics if facts.sentinel}
    sets = [judged for judged in result.sets if not judged.fails]
    human, limit = (Marked(name, "emphasis") for name in ("human", "limit"))
    rows: list[list[Cell]] = [
        [human, *(_people(judged.ceiling.get(judged.main)) for judged in sets)],
        [limit, *(_people(judged.limit.get(judged.main)) for judged in sets)],
    ]
    for column in result.columns():
        found = [judged.row(column) for judged in sets]
        metric = next((row.metric for row in found if row is not None), None)
        if metric is None:  # it has results only on sets that fail
            continue
        cells = [
            None if row is None else _best(row, judged.main)
            for row, judged in zip(found, sets, strict=True)
        ]
        rows.append([_name(column, metric in sentinels), *cells])
    headings: list[str | Marked] = [
        "metric",
        *(Marked(judged.name, "code") for judged in sets),
    ]
    return Table(headings, rows, "Summary")


def _best(row: MetricRow, main: str) -> Cell:
    estimate = row.statistics[main]
    first = row.cluster == 1 and estimate.low is not None and estimate.low > 0
    return Marked(_number(estimate), "strong") if first else _number(estimate)


def _section(judged: SetResult) -> str:
    return "\n\n".join(
        part
        for part in (
            f"## {markdown_text(judged.title)}",
            _facts(judged),
            markdown_table(_set_table(judged)),
            _bullets(_reasons(judged)),
            _dimensions(judged),
            _bullets(
                ["Notes: " + "; ".join(map(markdown_text, judged.notes))] if judged.notes else []
            ),
            _bullets([f"Problem: {markdown_text(problem)}" for problem in judged.problems]),
        )
        if part
    )


def _facts(judged: SetResult) -> str:
    what = {"turn": "responses", "dialogue": "dialogues", "pair": "responses"}[judged.level]
    counts = [f"{judged.items:,} {what}"]
    if judged.level == "pair":
        counts.append(f"{judged.pairs:,} pairs of them")
    counts += [
        f"{judged.clusters:,} independent dialogues or contexts",
        f"{judged.systems or 'unnamed'} systems",
        f"{judged.human_written:,} written by people",
        f"annotators an item: {judged.annotators}",
    ]
    return (
        f"{markdown_code(judged.name)}, judged for **{markdown_text(judged.dimension)}**: "
        f"{'; '.join(counts)}. "
        f"Krippendorff's alpha: {_agreement(judged.alpha)}. {_gate(judged)} "
        f"{markdown_text(judged.paper)}. "
        f"Licence: {markdown_text(judged.licence)}."
    )


def _gate(judged: SetResult) -> str:
    """Return what the reliability gate measured."""
    seen = judged.reliability
    said = [f"alpha of an item's mean judgement {seen.consistency.text(2)}"]
    if judged.level == "pair":
        said.append(f"triples preferred in a circle {seen.cyclic.text(2)}, chance 0.25")
    verdict = "**The reliability gate fails**" if judged.fails else "Reliability gate"
    return f"{verdict}: {'; '.join(said)}."


def _agreement(estimate: Estimate) -> str:
    return markdown_text(estimate.reason or "") if estimate.value is None else _people(estimate)


def _people(estimate: Estimate | None) -> str:
    """Return a number of people; a 1 refers to the notes, because independent people differ."""
    number = _number(estimate)
    return f"{number} (see the notes)" if number == "1.000" else number


def _set_table(judged: SetResult) -> Table:
    shown = [
        name
        for name in judged.statistics
        if any(row.statistics[name].value is not None for row in judged.rows)
    ] or [judged.main]
    rows: list[list[Cell]] = [
        [
            row.cluster,
            _name(row.column, row.sentinel),
            *(_cell(row.statistics[name], name == judged.main) for name in shown),
            _seconds(row.seconds_per_1000),
            None if row.truncated is None else f"{row.truncated:.1%}",
        ]
        for row in judged.rows
    ]
    people: list[list[Cell]] = [
        [
            "",
            Marked(name, "emphasis"),
            *(_people(numbers.get(statistic)) for statistic in shown),
            "",
            "",
        ]
        for name, numbers in (
            ("human", judged.ceiling),
            ("limit", judged.limit),
            ("floor", judged.floor),
        )
        if numbers
    ]
    headings = [_heading(name) + " [95%]" * (name == judged.main) for name in shown]
    head = ["rank", "metric", *headings, "s / 1,000 turns", "cut"]
    return Table(head, [*people, *rows], judged.title, align="rl" + "r" * (len(head) - 2))


def _dimensions(judged: SetResult) -> str:
    """Return the main statistic for every dimension, if there are several."""
    names = list(dict.fromkeys(d for row in judged.rows for d in row.dimensions))
    if len(names) < 2:
        return ""
    rows: list[list[Cell]] = [
        [
            _name(row.column, row.sentinel),
            *(_number(row.dimensions.get(d, {}).get(judged.main)) for d in names),
        ]
        for row in judged.rows
    ]
    table = markdown_table(Table(["metric", *names], rows))
    return f"{_heading(judged.main)} by dimension:\n\n{table}"


def _reasons(judged: SetResult) -> list[str]:
    """Return why numbers are missing: per reason, the statistics and metrics concerned."""
    missing: dict[tuple[str, str], list[str]] = {}
    for row in judged.rows:
        gone: dict[str, list[str]] = {}
        for name, estimate in row.statistics.items():
            if estimate.value is None:
                gone.setdefault(estimate.reason or "unknown", []).append(name)
        for reason, names in gone.items():
            about = ", ".join(map(_heading, names))
            if len(names) == len(row.statistics):
                about = "any statistic"
            missing.setdefault((f"No number for {about}", reason), []).append(row.column)
        if row.scored:
            for why, count in row.unscored.items():
                missing.setdefault((f"{count:,} unscored", why), []).append(row.column)
    everybody = len(judged.rows)
    return [
        f"{what} ({'all metrics' if len(who) == everybody else markdown_text(', '.join(who))}): "
        f"{markdown_text(reason)}."
        for (what, reason), who in missing.items()
    ] + [
        f"No human ceiling of {_heading(name)}: {markdown_text(estimate.reason or 'unknown')}."
        for name, estimate in judged.ceiling.items()
        if estimate.value is None
    ]


def _glossary(result: RunResult) -> str:
    used = dict.fromkeys(name for judged in result.sets for name in judged.statistics)
    meaning = {**PAIR_STATISTICS, **STATISTICS}
    lines = [f"{_heading(n)}: {meaning.get(n, n)}" for n in used]
    return _bullets(
        [
            *lines,
            "[95%]: interval by resampling whole dialogues or contexts",
            "s / 1,000 turns: seconds it took on the machine below; cut: share of the inputs "
            "longer than the network's window",
        ]
    )


def _heading(statistic: str) -> str:
    return _HEADINGS.get(statistic, statistic)


def _cell(estimate: Estimate, with_interval: bool) -> str:
    number = _number(estimate)
    if not with_interval or estimate.low is None or estimate.high is None:
        return number
    return f"{number} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _number(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return NONE
    return f"{estimate.value:.3f}".replace("-0.000", "0.000")


def _seconds(seconds: float | None) -> Cell:
    if seconds is None:
        return None
    return "<0.1" if seconds < 0.1 else f"{seconds:.1f}" if seconds < 100 else f"{seconds:,.0f}"


def _name(column: str, sentinel: bool) -> Cell:
    return Marked(column, "emphasis") if sentinel else column


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
