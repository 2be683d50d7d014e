"""`causerie bench`: how far metrics agree with people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import metric_options, with_hypotheses
from causerie.cli.causes import causes
from causerie.cli.rank import rank

if TYPE_CHECKING:
    from causerie.bench.results import RunResult

bench_app = typer.Typer(
    help="Which metric agrees with people, where, and is the difference real.",
    no_args_is_help=True,
)

Data = Annotated[
    Path, typer.Option("--data", help="The folder with the judged sets.", show_default=False)
]
Metrics = Annotated[
    str, typer.Option("--metrics", "-m", help="Names, separated by commas, or all.")
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="An option of a metric."),
]
_SHOWN = 4

TextFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", "-o", help="Also write it: .md, .tex, .csv or .json."),
]


@bench_app.command()
def sets() -> None:
    """List the judged sets: level, size, paper, licence, where the official file is published.

    Sets marked with * are the default of `causerie bench run`.
    """
    from causerie.bench.catalogue import catalogue

    for entry in catalogue().values():
        mark = "*" if entry.default else " "
        typer.echo(f"{mark} {entry.name}: {entry.title} ({entry.level}, {entry.items:,} items)")
        typer.echo(f"      {entry.paper}")
        typer.echo(f"      licence: {entry.licence}")
        typer.echo(f"      {entry.url}" + "".join(f"\n      {file}" for file in entry.files))


@bench_app.command()
def convert(
    name: Annotated[str, typer.Argument(help="As in `causerie bench sets`.", show_default=False)],
    files: Annotated[
        list[Path], typer.Argument(help="The files as published.", show_default=False)
    ],
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="The judged set [default: NAME.jsonl.gz]."),
    ] = None,
) -> None:
    """Make a judged set of the files its authors publish.

    Example: `causerie bench convert fed_turn fed_data.json --out judged/fed_turn.jsonl.gz`
    """
    from causerie.bench.convert import convert as convert_files

    path = out or Path(f"{name}.jsonl.gz")
    typer.echo(f"{path}: {convert_files(name, files, path):,} records")


@bench_app.command()
def run(
    data: Data,
    sets: Annotated[
        str,
        typer.Option(
            "--sets", help="Names, separated by commas; default and all stand for several."
        ),
    ] = "default",
    metrics: Metrics = "all",
    dimension: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="What people judged; sets without it are left out [default: the main "
            "dimension of each set]."
        ),
    ] = None,
    set_: Set = None,
    hypotheses: options.Hypotheses = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder for results.json, .parquet, .md, .html.")
    ] = Path("bench-results"),
    max_items: Annotated[
        int, typer.Option(min=1, help="At most so many items of a set: a fixed sample.")
    ] = 1000,
    resamples: Annotated[int, typer.Option(min=1, help="For intervals.")] = 1000,
    permutations: Annotated[
        int, typer.Option(min=1, help="For significance, at least: many metrics take more.")
    ] = 10_000,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Compare metrics with human judgement on judged sets.

    Scores are kept: an interrupted run continues where it stopped, and a metric that is added
    later is the only one to be computed. Trivial metrics (length, turns, overlap) and the
    annotators' own agreement are always in the table.

    Examples:

        causerie bench run --data judged --metrics cosine,perplexity --sets fed_turn,fed_dialog

        causerie bench run --data judged --sets default --metrics all --out bench-results
    """
    from causerie.bench.files import write_results
    from causerie.bench.results import RunOptions
    from causerie.bench.run import about, choose_metrics, choose_sets, execute, plan
    from causerie.bench.scores import ScoreStore
    from causerie.cli.console import Display, console, plain
    from causerie.engines import Engines, Settings
    from causerie.progress import Progress

    settings = Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    read, absent = choose_sets(sets, data)
    judged, others = about(dimension, read)
    assigned = with_hypotheses(metric_options(set_ or []), metrics, hypotheses)
    loaded, unusable = choose_metrics(metrics, Engines(settings), assigned)
    for left_out in (*absent, *others, *unusable):
        console.print(plain(f"left out: {left_out}"))
    chosen = RunOptions(max_items, resamples, permutations, seed, dimension)
    with ScoreStore(scores) as store:
        with Display() as watch:
            planned = plan(judged, loaded, store, chosen, lambda *told: watch(Progress(*told)))
        size = f"{len(judged)} set{'s' * (len(judged) > 1)}, {len(loaded)} metrics"
        console.print(f"{size}: about {_duration(planned.seconds)}")
        with Display() as watch:
            result = execute(planned, store, lambda *told: watch(Progress(*told)))
    written = write_results(result, out)
    _show(result)
    for path in written:
        console.print(plain(f"wrote {path}"))


@bench_app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="causalscore, density, grade, cf-lstm, cpmi, or all.", show_default=False
        ),
    ],
    data: Data,
    metrics: Metrics = "all",
    set_: Set = None,
    hypotheses: options.Hypotheses = None,
    out: TextFile = None,
    scores: options.ScoresFile = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Put our numbers beside the ones a paper prints, in the paper's own tables.

    Example: `causerie bench reproduce causalscore --data judged --metrics bleu,rouge`
    """
    from causerie.bench.printed import PAPERS
    from causerie.bench.reproduce import reproduce as reproduce_paper
    from causerie.bench.reproduction import (
        reproduction_markdown,
        reproduction_tables,
        reproduction_text,
    )
    from causerie.bench.scores import ScoreStore
    from causerie.cli.console import Display
    from causerie.engines import Engines, Settings
    from causerie.render.tables import check_suffix, write_tables

    settings = Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    if out:
        check_suffix(out)
    chosen = None if metrics == "all" else [m.strip() for m in metrics.split(",") if m.strip()]
    engines = Engines(settings)
    assigned = with_hypotheses(metric_options(set_ or []), metrics, hypotheses)
    with ScoreStore(scores) as store, Display() as watch:
        results = [
            reproduce_paper(
                name,
                data,
                store,
                engines,
                metrics=chosen,
                options=assigned,
                watch=watch,
            )
            for name in (PAPERS if paper == "all" else (paper,))
        ]
    typer.echo("\n".join(map(reproduction_text, results)))
    if out:
        tables = [table for one in results for table in reproduction_tables(one)]
        write_tables(out, *tables, text="\n".join(map(reproduction_markdown, results)))


@bench_app.command()
def probe(
    data: Data,
    attacks: Annotated[
        str, typer.Option("--attacks", help="Names, separated by commas, or all.")
    ] = "all",
    metrics: Metrics = "all",
    set_: Set = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="The folder for probe.json and probe.md."),
    ] = None,
    max_items: Annotated[
        int,
        typer.Option(min=1, help="At most so many pairs of answers of an attack, whole contexts."),
    ] = 500,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """How often a true answer scores above its corrupted twin, by attack.

    Example: `causerie bench probe --data judged --attacks ner,random --metrics cosine`
    """
    from causerie.bench.files import write_probe
    from causerie.bench.probe import probe_markdown, run_probe
    from causerie.bench.run import choose_metrics
    from causerie.bench.scores import ScoreStore
    from causerie.cli.console import Display, console, plain
    from causerie.engines import Engines, Settings

    settings = Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    loaded, unusable = choose_metrics(metrics, Engines(settings), metric_options(set_ or []))
    for left_out in unusable:
        console.print(plain(f"left out: {left_out}"))
    chosen = None if attacks == "all" else [a.strip() for a in attacks.split(",") if a.strip()]
    with ScoreStore(scores) as store, Display() as watch:
        result = run_probe(
            loaded,
            data,
            store,
            attacks=chosen,
            max_items=max_items,
            seed=seed,
            watch=watch,
        )
    typer.echo(probe_markdown(result))
    for path in write_probe(result, out) if out else ():
        console.print(plain(f"wrote {path}"))


bench_app.command()(rank)
bench_app.command()(causes)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _show(result: RunResult) -> None:
    """Set by set on standard output: people, the best metrics, the best trivial one."""
    from rich.console import Console
    from rich.table import Table

    from causerie.cli.console import plain

    table = Table(box=None, pad_edge=False)
    for heading in ("set", "statistic", "human", "first rank", "best sentinel"):
        table.add_column(heading, overflow="fold")
    for judged in result.sets:
        named = [
            (row, f"{row.column} {value:.3f}")
            for row in judged.rows
            if (value := row.statistics[judged.main].value) is not None
        ]
        first = [text for row, text in named if row.cluster == 1]
        trivial = [text for row, text in named if row.sentinel]
        if len(first) > _SHOWN:
            first[_SHOWN:] = [f"and {len(first) - _SHOWN} more"]
        human = judged.ceiling.get(judged.main)
        shown = "" if human is None or human.value is None else f"{human.value:.3f}"
        cells = (judged.name, judged.main, shown, ", ".join(first), "".join(trivial[:1]))
        table.add_row(*map(plain, cells))
    Console().print(table)
