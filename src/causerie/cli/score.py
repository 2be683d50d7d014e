"""`causerie score`: from files of conversations to a table of scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import metric_options, with_hypotheses
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.metrics.base import Metric
    from causerie.scoring import Summary

DEFAULT_METRICS = "cosine,perplexity,overlap,length"

_EXAMPLES = """
**Examples**

    causerie score conversations.jsonl

    causerie score logs.jsonl.gz --speaker system --out scores.parquet

    causerie score responses.csv --metrics bleu,bertscore,cosine --out scores.csv

    zcat chats.jsonl.gz | causerie score - --metrics cosine --out -

Exit status: 0 all scored, 1 some records were skipped, 2 nothing could be done.
"""


def score(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="JSONL, JSON, CSV, TSV, Parquet or text, also gzipped; - is standard input.",
            show_default=False,
        ),
    ],
    metrics: Annotated[
        str, typer.Option("--metrics", "-m", help="Names, separated by commas.")
    ] = DEFAULT_METRICS,
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--out",
            "-o",
            help="Where the rows go, format by suffix (.jsonl, .csv, .tsv, .parquet, also .gz); "
            "- is JSONL on standard output. Without it only the summary is shown.",
        ),
    ] = None,
    report: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Also write a page (.html) with charts and coloured conversations."),
    ] = None,
    level: Annotated[str, typer.Option(help="One row per: turn or dialogue.")] = "turn",
    speaker: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Score only this speaker, or this role (user or system)."),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Stop after this many good records."),
    ] = None,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="An option of a metric."),
    ] = None,
    input_format: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="jsonl, json, csv, tsv, parquet or text [default: told from content]."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")] = False,
    hypotheses: options.Hypotheses = None,
    percentiles: Annotated[
        bool, typer.Option("--percentiles", help="Add percentiles among human responses.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column with explanations.")
    ] = False,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    from causerie.cli.console import RunDisplay, console, show_summary
    from causerie.engines import Engines, Settings
    from causerie.io import check_table_path, write_table
    from causerie.report import check_reportable, write_run_report
    from causerie.scoring import Inputs, Layout, Run

    if level not in ("turn", "dialogue"):
        raise CauserieError(f"--level is turn or dialogue, not {level!r}")
    file = Path(out) if out not in (None, "-") else None
    if file:
        check_table_path(file)
    engines = Engines(
        Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    )
    layout = Layout(
        load_metrics(metrics, set_ or [], engines, hypotheses),
        "dialogue" if level == "dialogue" else "turn",
        speaker,
        percentiles,
        explain,
    )
    if percentiles and not any(m.calibrated for m in layout.metrics):
        raise CauserieError("none of these metrics has percentiles: leave --percentiles out")
    run = Run(Inputs(tuple(inputs), input_format, limit), layout, engines, out=file, strict=strict)
    done = False
    try:
        if report:
            check_reportable(report, run)
        with RunDisplay(run) as display:
            summary = run.execute(display.watcher)
        if not summary.items:
            raise CauserieError(_nothing_to_score(summary, speaker))
        if out == "-":
            for row in run.rows():
                typer.echo(json.dumps(row, ensure_ascii=False))
        elif file:
            write_table(run.rows(), list(layout.types), file, layout.types)
        if report:
            write_run_report(report, run)
        done = True
    except KeyboardInterrupt:
        if file:
            console.print("interrupted: the same command goes on where this one stopped")
        raise
    finally:
        run.close(keep=not done)
    show_summary(run, summary, [p for p in (file, report) if p])
    if summary.rejected:
        raise typer.Exit(1)


score.__doc__ = (
    "Score every response (or dialogue) of one or more files.\n\n"
    "An interrupted run with --out continues where it stopped.\n" + _EXAMPLES
)


def _nothing_to_score(summary: Summary, speaker: str | None) -> str:
    read = f"nothing to score: {summary.records} records read, {summary.rejected} of them bad"
    if speaker and summary.speakers:
        return f"{read}; no response by {speaker}, the speakers are {', '.join(summary.speakers)}"
    return read


def load_metrics(
    names: str, assignments: list[str], engines: Engines, hypotheses: Path | None = None
) -> tuple[Metric, ...]:
    """The metrics named on the command line, with the options that --set gives them."""
    from causerie import metrics as registry

    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not chosen:
        raise CauserieError("--metrics names no metric: `causerie metrics` lists them")
    settings = metric_options(assignments)
    if unused := settings.keys() - set(chosen):
        raise CauserieError(f"--set names {', '.join(sorted(unused))}, which --metrics does not")
    settings = with_hypotheses(settings, names, hypotheses)
    return tuple(registry.load(name, engines, **settings.get(name, {})) for name in chosen)
