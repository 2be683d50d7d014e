"""`causerie bench`: how well metrics agree with people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import (
    artifacts_of,
    metric_options,
    with_hypotheses,
    with_judge,
)
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.bench.results import RunResult

bench_app = typer.Typer(
    help="Measure how well metrics agree with people, and whether differences are significant.",
    no_args_is_help=True,
)

Data = Annotated[
    Path, typer.Option("--data", help="Folder of the judged sets.", show_default=False)
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics",
        "-m",
        metavar="[ALIAS=]METRIC[:OPTION=VALUE],...",
        help="Names of metrics, separated by commas, or all.",
    ),
]
OutFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", "-o", help="Also write the result: .md, .tex, .csv or .json."),
]
_SHOWN = 4


@bench_app.command()
def sets() -> None:
    """List the judged sets: level, size, paper, licence, and where to find the official file.

    Sets marked with * are the default of `causerie bench run`.
    """
    from causerie.bench.sets.catalogue import catalogue
    from causerie.cli.console import show

    for entry in catalogue().values():
        mark = "*" if entry.default else " "
        show(f"{mark} {entry.name}: {entry.title} ({entry.level}, {entry.items:,} items)")
        show(f"      {entry.paper}")
        show(f"      licence: {entry.licence}")
        if entry.unreliable:
            show(f"      fails the reliability gate: {entry.unreliable}")
        show(f"      {entry.url}" + "".join(f"\n      {file}" for file in entry.files))


@bench_app.command()
def convert(
    name: Annotated[
        str, typer.Argument(help="Name as in `causerie bench sets`.", show_default=False)
    ],
    files: Annotated[list[Path], typer.Argument(help="Files as published.", show_default=False)],
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Judged set to write [default: NAME.jsonl.gz]."),
    ] = None,
) -> None:
    """Convert the files that authors publish to a judged set.

    Example: `causerie bench convert fed_turn fed_data.json --out judged/fed_turn.jsonl.gz`
    """
    from causerie.bench.sets.convert import convert as convert_files
    from causerie.cli.console import show

    path = out or Path(f"{name}.jsonl.gz")
    show(f"{path}: {convert_files(name, files, path):,} records")


@bench_app.command()
@options.engine_options
@options.judge_options
def run(
    data: Data,
    sets: Annotated[
        str,
        typer.Option("--sets", help="Names of sets, separated by commas, or default or all."),
    ] = "default",
    metrics: Metrics = "all",
    dimension: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Dimension that people judged; sets without it are left out [default: the main "
            "dimension of each set]."
        ),
    ] = None,
    set_: options.SetOption = None,
    hypotheses: options.Hypotheses = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Folder for results.json, .parquet, .md, .html, or one file: .md, .tex, "
            ".csv or .json.",
        ),
    ] = Path("bench-results"),
    max_items: Annotated[
        int, typer.Option(min=1, help="Maximum number of items per set (a fixed sample).")
    ] = 1000,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples.")] = 1000,
    permutations: Annotated[
        int, typer.Option(min=1, help="Minimum number of permutations; many metrics need more.")
    ] = 10_000,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    refresh: options.Refresh = False,
    *,
    judge: Any,
    settings: Any,
) -> None:
    """Compare metrics with human judgement on judged sets.

    Scores are stored: an interrupted run continues where it stopped, and if a metric is added
    later, only its scores are computed. Trivial metrics (length, turns, overlap) and the
    annotators' own agreement are always in the table.

    Examples:

        causerie bench run --data judged --metrics cosine,perplexity --sets fed_turn,fed_dialog

        causerie bench run --data judged --sets default --metrics bleu,b2=bleu:order=2 --out here
    """
    from causerie.bench.files import check_out, write_results
    from causerie.bench.results import RunOptions
    from causerie.bench.run import run_bench
    from causerie.cli.console import Display
    from causerie.scoring import ScoreStore

    check_out(out)
    assigned = with_judge(metric_options(set_ or []), metrics, judge)
    with ScoreStore(scores) as store, Display() as watch:
        result = run_bench(
            data,
            sets,
            metrics,
            metric_options=with_hypotheses(assigned, metrics, hypotheses),
            settings=settings,
            options=RunOptions(max_items, resamples, permutations, seed, dimension),
            store=store,
            refresh=refresh,
            watch=watch,
        )
    written = write_results(result, out)
    _show(result)
    _tell(written)
    watch.end()


@bench_app.command()
@options.engine_options
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="causalscore, density, grade, cf-lstm, cpmi, or all.", show_default=False
        ),
    ],
    data: Data,
    metrics: Metrics = "all",
    set_: options.SetOption = None,
    hypotheses: options.Hypotheses = None,
    variant: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="NAME=ARTIFACT",
            help="Artifact for a row that needs a training of its own, such as 'without "
            "graph=FOLDER'; repeat for several.",
            show_default=False,
        ),
    ] = None,
    out: OutFile = None,
    scores: options.ScoresFile = None,
    refresh: options.Refresh = False,
    *,
    settings: Any,
) -> None:
    """Put our numbers beside those of a paper, in the paper's own tables.

    A metric that the paper does not have gets a row of its own if it is named. With --research,
    trained metrics are those trained on the papers' data.

    Example: `causerie bench reproduce causalscore --data judged --metrics bleu,rouge`
    """
    from causerie.bench.papers.printed import PAPERS, printed_tables
    from causerie.bench.papers.render import (
        reproduction_markdown,
        reproduction_tables,
        reproduction_text,
    )
    from causerie.bench.papers.run import check_variants
    from causerie.bench.papers.run import reproduce as reproduce_paper
    from causerie.cli.console import Display, show
    from causerie.engines import Engines
    from causerie.render.tables import check_suffix, write_tables
    from causerie.scoring import ScoreStore

    if out:
        check_suffix(out)
    assigned = with_hypotheses(metric_options(set_ or []), metrics, hypotheses)
    names = PAPERS if paper == "all" else (paper,)
    papers = [printed_tables(name) for name in names]
    trained = artifacts_of(variant or [])
    check_variants(trained, papers)
    engines = Engines(settings)
    with ScoreStore(scores) as store, Display() as watch:
        results = [
            reproduce_paper(
                one.name,
                data,
                metrics=None if metrics == "all" else metrics,
                options=assigned,
                engines=engines,
                store=store,
                refresh=refresh,
                variants={name: trained[name] for name in one.variants if name in trained},
                watch=watch,
            )
            for one in papers
        ]
    show("\n".join(map(reproduction_text, results)))
    if out:
        tables = (table for result in results for table in reproduction_tables(result))
        write_tables(out, *tables, text="\n".join(map(reproduction_markdown, results)))
        _tell([out])
    watch.end()


@bench_app.command()
@options.engine_options
def probe(
    data: Data,
    attacks: Annotated[
        str, typer.Option("--attacks", help="Names of attacks, separated by commas, or all.")
    ] = "all",
    metrics: Metrics = "all",
    set_: options.SetOption = None,
    hypotheses: options.Hypotheses = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            "-o",
            help="Folder for probe.json and probe.md, or one file: .md, .tex, .csv or .json.",
        ),
    ] = None,
    max_items: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of answer pairs per attack, by whole contexts."),
    ] = 500,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    refresh: options.Refresh = False,
    *,
    settings: Any,
) -> None:
    """Measure by attack how often a true answer scores above its corrupted twin.

    Example: `causerie bench probe --data judged --attacks ner,random --metrics cosine`
    """
    from causerie.bench.files import check_out, write_probe
    from causerie.bench.probe import probe_markdown, run_probe
    from causerie.bench.run import choose_metrics
    from causerie.cli.console import Display, say, show
    from causerie.scoring import Scorer, ScoreStore

    if out:
        check_out(out)
    assigned = with_hypotheses(metric_options(set_ or []), metrics, hypotheses)
    chosen = choose_metrics(metrics, assigned, settings)
    for left_out in chosen.left_out:
        say(f"left out: {left_out}")
    named = None if attacks == "all" else [a.strip() for a in attacks.split(",") if a.strip()]
    with ScoreStore(scores) as store, Display() as watch:
        result = run_probe(
            Scorer(chosen.plan, store, refresh=refresh),
            data,
            attacks=named,
            optional=chosen.optional,
            max_items=max_items,
            seed=seed,
            watch=watch,
        )
    show(probe_markdown(result))
    _tell(write_probe(result, out) if out else [])
    watch.end()


@bench_app.command()
@options.engine_options
def rank(
    data: Annotated[
        list[Path],
        typer.Option(help="Dialogues of people; repeat for several files.", show_default=False),
    ],
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            "-m",
            metavar="[ALIAS=]METRIC[:OPTION=VALUE],...",
            help="Metrics or folders of artifacts, separated by commas, optionally with options: "
            "density:distance=classifier.",
        ),
    ] = "density,density:distance=classifier,cosine,overlap,length",
    set_: options.SetOption = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            "-o",
            help="Folder for ranking.md and ranking.svg, or one file: .md, .tex, .csv or .json.",
        ),
    ] = None,
    max_items: Annotated[int, typer.Option(min=1, help="Maximum number of exchanges.")] = 1000,
    attacks: Annotated[
        bool, typer.Option("--attacks", help="Corrupt the true responses, too, in nine ways.")
    ] = False,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    refresh: options.Refresh = False,
    *,
    settings: Any,
) -> None:
    """Measure whether metrics find the human response among random ones, without judgements.

    If `cosine` is among the metrics, the others are compared with it on the same exchanges.

    Example: `causerie bench rank --data chats.jsonl --metrics density,cosine,my-density --out here`
    """
    from causerie.bench.files import check_out, write_ranking
    from causerie.bench.ranking import ranking_markdown, run_ranking, variants
    from causerie.cli.console import Display, show
    from causerie.scoring import Plan, Scorer, ScoreStore
    from causerie.training.corpus import Corpus

    if out:
        check_out(out)
    plan = Plan.of(
        variants(metrics), options=metric_options(set_ or []), settings=settings, speaker="all"
    )
    plan.check_settings()
    with ScoreStore(scores) as store, Display() as watch:
        corpus = Corpus.read(data, lambda record: watch.note(f"skipped {record}"))
        scorer = Scorer(plan, store, refresh=refresh)
        result = run_ranking(
            scorer, corpus, max_items=max_items, attacks=attacks, seed=seed, watch=watch
        )
    show(ranking_markdown(result))
    _tell(write_ranking(result, out) if out else [])
    watch.end()


@bench_app.command()
@options.engine_options
def causes(
    annotations: Annotated[
        list[Path],
        typer.Option(
            help="Causal annotations that were not trained on; repeat for several files.",
            show_default=False,
        ),
    ],
    metric: Annotated[
        str,
        typer.Option(
            "--metric", "-m", help="causalscore or the folder of an artifact, as in here:history=8."
        ),
    ] = "causalscore",
    test: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Also an independence test: fisherz, kci or rcit (causal-learn)."),
    ] = None,
    out: OutFile = None,
    seed: options.Seed = 0,
    *,
    settings: Any,
) -> None:
    """Measure both classifiers of causalscore on annotated causes, beside trivial baselines.

    Example: `causerie bench causes --annotations dream.test.jsonl --metric my-causalscore`
    """
    from causerie.bench.causes import causes_markdown, causes_tables, run_causes
    from causerie.cli.console import Display, show
    from causerie.engines import Engines
    from causerie.metrics.causalscore import CausalScore
    from causerie.metrics.causalscore.measure import DiscoveryTest
    from causerie.render.tables import check_suffix, write_tables
    from causerie.scoring import Plan
    from causerie.training.corpus import AnnotatedCorpus

    if out:
        check_suffix(out)
    (chosen,) = Plan.of({"causalscore": metric}).metrics.values()
    if not isinstance(chosen, CausalScore):
        raise CauserieError(f"{metric} does not find causes: give causalscore or an artifact of it")
    engines = Engines(settings)
    with Display() as watch:
        corpus = AnnotatedCorpus.read(annotations, watch.note)
        result = run_causes(
            chosen,
            engines,
            corpus,
            [path.name.split(".")[0] for path in annotations],
            test=DiscoveryTest(engines.encoder, test) if test else None,
            seed=seed,
            watch=watch,
        )
    show(causes_markdown(result))
    if out:
        write_tables(out, *causes_tables(result), text=causes_markdown(result))
        _tell([out])
    watch.end()


def _tell(written: list[Path]) -> None:
    from causerie.cli.console import say

    for path in written:
        say(f"wrote {path}")


def _show(result: RunResult) -> None:
    """Show for each set the human ceiling, the best metrics and the best trivial one."""
    from rich.console import Console

    from causerie.cli.console import PlainTable

    table = PlainTable("set", "statistic", "human", "first rank", "best sentinel")
    for judged in result.sets:
        named = [
            (row, f"{row.column} {value:.3f}")
            for row in judged.rows
            if (value := row.statistics[judged.main].value) is not None
        ]
        first = [text for row, text in named if row.cluster == 1]
        trivial = [text for row, text in named if row.sentinel]
        if judged.fails:
            first, trivial = ["fails the reliability gate"], []
        if len(first) > _SHOWN:
            first[_SHOWN:] = [f"and {len(first) - _SHOWN} more"]
        human = judged.ceiling.get(judged.main)
        shown = "" if human is None or human.value is None else f"{human.value:.3f}"
        cells = (judged.name, judged.main, shown, ", ".join(first), "".join(trivial[:1]))
        table.add_row(*cells)
    Console().print(table)
