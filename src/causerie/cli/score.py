"""`causerie score`: from files of conversations to a table of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import chosen_plan
from causerie.errors import CauserieError

_EXAMPLES = """
**Examples**

    causerie score conversations.jsonl

    causerie score logs.jsonl.gz --speaker all --out scores.parquet

    causerie score responses.csv --columns context=history,response=reply --metrics cosine

    causerie score answers.jsonl --metrics bleu,b2=bleu:order=2,bertscore --out scores.csv

    causerie score nightly.jsonl --fail-if 'percentile(density) < 40' --fail-if 'skipped > 1%'

    causerie score logs.jsonl --server http://127.0.0.1:8765 --out scores.csv

    causerie score 's3://bucket/logs/*.parquet' --runner ray --address auto --out s3://bucket/scores

    zcat chats.jsonl.gz | causerie score - --metrics cosine --out -

Exit status: 0 every record was read and every metric scored something (single rows may be
unscored, with a reason), 1 some records were skipped or a metric scored nothing, 2 nothing could be
done or no metric but sentinels scored anything, 3 a --fail-if condition holds, 4 the environment
failed (no room, no permission, a locked file, closed output).
"""


@options.engine_options
@options.judge_options
@options.cluster_options
def score(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="JSONL, JSON, CSV, TSV, Parquet or text, also gzipped; - is standard input.",
            show_default=False,
        ),
    ],
    metrics: options.Metrics = None,
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
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what is at --out and --report.")
    ] = False,
    level: Annotated[str, typer.Option(help="One row per: turn or dialogue.")] = "turn",
    speaker: options.Speaker = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Stop after this many good records."),
    ] = None,
    set_: options.SetOption = None,
    input_format: options.InputFormat = None,
    columns: options.InputColumns = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")] = False,
    hypotheses: options.Hypotheses = None,
    percentiles: Annotated[
        bool, typer.Option("--percentiles", help="Add percentiles among human responses.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column with explanations.")
    ] = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave out of the rows what was said.")
    ] = False,
    conversations: Annotated[
        bool,
        typer.Option(
            "--conversations",
            help="Add a column with the turns around the scored ones, so that `causerie serve` "
            "shows whole conversations.",
        ),
    ] = False,
    fail_if: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="CONDITION",
            help="Exit with 3 if it holds: 'cosine < 0.3', 'percentile(density) < 40', "
            "'unscored(cosine) > 5%' or 'skipped > 1%'. Several may be given.",
        ),
    ] = None,
    junit: options.JUnit = None,
    scores: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--scores", help="File that keeps what networks score [default: nothing is kept]."
        ),
    ] = None,
    refresh: options.Refresh = False,
    log: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="mlflow|wandb", help="Also keep means, signature and files in that tracker."
        ),
    ] = None,
    server: options.Server = None,
    token_file: options.TokenFile = None,
    *,
    judge: Any,
    settings: Any,
    cluster: Any,
) -> None:
    from contextlib import ExitStack

    from causerie.cli.console import Display, say, show_row, show_summary
    from causerie.io import parse_columns
    from causerie.scoring import Inputs, Layout, Run, Scorer, ScoreStore
    from causerie.scoring.cluster import ClusterRun
    from causerie.scoring.gates import conclude, parse_condition, write_junit
    from causerie.scoring.tracking import check_tracker, track
    from causerie.server.remote import remote_scorer

    scorer: Scorer
    if server is None:
        plan = chosen_plan(
            metrics, set_, hypotheses, settings, judge=judge, level=level, speaker=speaker
        )
        scorer = Scorer(plan, refresh=refresh)
    else:
        local = {"--set": set_, "--hypotheses": hypotheses, "--scores": scores, "--judge": judge}
        client = options.client_of(server, token_file, settings, local)
        scorer = remote_scorer(client, metrics, level, speaker)
        plan = scorer.plan
    conditions = [parse_condition(text, plan.columns, "mean") for text in fail_if or []]
    for given, needed, met in (
        ("--junit", "--fail-if", junit is None or conditions),
        ("--refresh", "--scores", not refresh or scores),
        ("--token-file", "--server", not token_file or server),
    ):
        if not met:
            raise CauserieError(f"{given} has no effect without {needed}: give both or neither")
    if log:
        check_tracker(log)
    layout = Layout(plan, percentiles, explain, not no_text, conversations)
    source = Inputs(
        tuple(inputs), input_format, limit, parse_columns(columns) if columns is not None else {}
    )
    file = Path(out) if out not in (None, "-") else None
    run: Run | ClusterRun
    if cluster is None:
        run = Run(scorer, source, layout, out=file, report=report, strict=strict, force=force)
    else:
        if unused := [o for o, given in (("--scores", scores), ("--server", server)) if given]:
            raise CauserieError(f"{unused[0]} has no effect with --runner ray: leave it out")
        if out is None or out == "-":
            raise CauserieError("--runner ray writes a folder of parts: name it with --out")
        run = ClusterRun(layout, source, out, cluster, report=report, strict=strict, force=force)
    with ExitStack() as stack:
        if scores:
            scorer.store = stack.enter_context(ScoreStore(scores))
        stack.enter_context(run)
        try:
            with Display() as display:
                summary = run.execute(display)
        except (KeyboardInterrupt, SystemExit):  # a signal ended it
            if run.kept:
                say("interrupted: the same command goes on where this one stopped")
            else:
                say("interrupted: nothing was kept")
            raise
        verdicts = [summary.judge(condition) for condition in conditions]
        if junit:
            write_junit(junit, f"causerie score {source.title}", verdicts)
        if not summary.items:
            raise CauserieError(summary.nothing_scored(speaker))
        if out == "-" and isinstance(run, Run):
            for row in run.rows():
                show_row(row)
        written = run.write()
    if junit:
        written.append(junit)
    show_summary(summary, plan.signature, written)
    if log:
        track(log, source.title, plan, summary, written)
    unscored = {name: one.unscored for name, one in summary.columns.items() if not one.scored}
    skipped = bool(summary.rejected)
    raise typer.Exit(conclude(plan, verdicts, unscored, skipped=skipped, say=say))


score.__doc__ = (
    "Score every response (or dialogue) of one or more files.\n\n"
    "An interrupted run with --out continues where it stopped.\n" + _EXAMPLES
)
