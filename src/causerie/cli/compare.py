"""`causerie compare`: is the second file better than the first, and by how much?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from causerie.cli import options
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.bench.compare import ColumnComparison, CompareResult, Example
    from causerie.bench.gates import Condition
    from causerie.stats import Estimate

EXCERPT = 90
_EXAMPLES = """
**Examples**

    causerie compare old.jsonl new.jsonl --speaker system

    causerie compare old.csv new.csv --metrics bertscore,length --out comparison.json

    causerie compare old.jsonl new.jsonl --metrics cosine --fail-if 'cosine < -0.02' --significant

Exit status: 0 compared, 1 some records were skipped, 2 nothing could be done, 3 a --fail-if
condition holds.
"""


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Responses of the old system.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Responses of the new system.")],
    metrics: Annotated[
        str, typer.Option("--metrics", "-m", help="Names, separated by commas.")
    ] = "cosine,overlap,length",
    speaker: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Compare only this speaker, or this role (user or system)."),
    ] = None,
    fail_if: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="'COLUMN < NUMBER'",
            help="Exit with status 3 if this holds for the difference B minus A (< or >); "
            "may be given several times.",
        ),
    ] = None,
    significant: Annotated[
        bool,
        typer.Option(
            "--significant",
            help="A --fail-if condition has to hold for the whole 95% interval.",
        ),
    ] = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write everything as JSON."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For resampling and permutations.")] = 0,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="An option of a metric."),
    ] = None,
    input_format: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="jsonl, json, csv, tsv, parquet or text [default: told from content]."),
    ] = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    from causerie.bench.compare import compare as compare_responses
    from causerie.bench.gates import parse_condition
    from causerie.bench.pairing import read_responses
    from causerie.bench.scores import ScoreStore
    from causerie.cli.console import console, plain
    from causerie.engines import Engines, Settings
    from causerie.io import write_whole

    if a == b == "-":
        raise CauserieError("standard input can be only one of the two: give a file for the other")
    engines = Engines(
        Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    )
    chosen = load_metrics(metrics, set_ or [], engines)
    columns = [column for metric in chosen for column in metric.columns("turn")]
    conditions = [parse_condition(text, columns) for text in fail_if or []]
    old, new = (read_responses(path, speaker, input_format) for path in (a, b))
    for rejected in (*old.rejected, *new.rejected):
        console.print(plain(f"skipped {rejected}"))
    with ScoreStore() as store, console.status("comparing") as status:
        result = compare_responses(
            old,
            new,
            chosen,
            store,
            seed=seed,
            watch=lambda name, done, total: status.update(f"{name}: {done} of {total} scored"),
        )
    verdicts = [
        (c, c.holds(result.column(c.column).difference, significant=significant))
        for c in conditions
    ]
    _show(result)
    if out:
        held = [{"condition": str(c), "holds": holds} for c, holds in verdicts]
        content = {**result.to_json(), "significant": significant, "fail_if": held}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
        write_whole(out, text + "\n")
    _judge(result, verdicts, significant)


compare.__doc__ = (
    "Compare two files of responses: difference, interval, p-value and win rate per metric.\n\n"
    "Where both files hold the same contexts (the same user turns, or the same "
    "context rows), responses are compared in pairs. All differences are B minus A.\n" + _EXAMPLES
)


def _judge(
    result: CompareResult, verdicts: list[tuple[Condition, bool | None]], significant: bool
) -> None:
    """The exit status, and on standard error why."""
    from causerie.cli.console import console

    sure = " (the whole interval)" if significant else ""
    for condition, holds in verdicts:
        if holds:
            console.print(f"failed: {condition}{sure}")
    if any(holds for _, holds in verdicts):
        raise typer.Exit(3)
    for condition, holds in verdicts:
        if holds is None:
            reason = result.column(condition.column).difference.reason or "it has no interval"
            raise CauserieError(
                f"--fail-if '{condition}' cannot be decided ({reason}): "
                "give more data, or leave it out"
            )
    if result.a.rejected or result.b.rejected:
        raise typer.Exit(1)


def _show(result: CompareResult) -> None:
    """The result is what a reader asked for: standard output."""
    from rich.console import Console
    from rich.table import Table

    from causerie.cli.console import plain

    page = Console(highlight=False, soft_wrap=True)
    for name, side in (("a", result.a), ("b", result.b)):
        skipped = f", {side.rejected} of {side.records} records skipped" if side.rejected else ""
        page.print(
            plain(
                f"{name}: {side.source}: {side.responses} responses "
                f"in {side.dialogues} dialogues or contexts{skipped}"
            )
        )
    page.print(_how(result))
    page.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for heading in ("a", "b", "b - a", "95% interval", "p", "b wins"):
        table.add_column(heading, justify="right")
    for column in result.columns:
        table.add_row(*_cells(column))
    page.print(table)
    for column in result.columns:
        if column.difference.value is None:
            page.print(plain(f"{column.column}: no number: {column.difference.reason}"))
        elif column.difference.low is None:
            page.print(plain(f"{column.column}: no interval: {column.difference.reason}"))
        for reason, count in column.unscored.items():
            page.print(plain(f"{column.column}: {count} unscored: {reason}"))
    for column in result.columns:
        if column.examples and not column.sentinel:
            page.print(
                f"\n{'differ most' if result.pairs is not None else 'worst'} by {column.column}"
            )
            for example in column.examples:
                for line in _lines(example):
                    page.print(plain(line))
    page.print()
    page.print(plain(f"signature: {result.signature}"))


def _how(result: CompareResult) -> str:
    if result.pairs is None:
        return "unpaired: most responses have no partner that answers the same in the other file"
    left_out = result.a.responses + result.b.responses - 2 * result.pairs
    others = f"; {left_out} responses without a partner are left out" if left_out else ""
    return f"paired: {result.pairs} pairs of responses that answer the same{others}"


def _cells(column: ColumnComparison) -> list[str]:
    def number(value: float | None, form: str = ".4g") -> str:
        return "" if value is None else format(value, form)

    arrow = "↑" if column.higher_is_better else "↓"
    return [
        f"{column.column} {arrow}",
        number(column.mean_a),
        number(column.mean_b),
        number(column.difference.value, "+.4g"),
        _interval(column.difference),
        number(column.p, ".4f"),
        number(column.win_rate.value, ".1%"),
    ]


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.low:+.3g} to {estimate.high:+.3g}"


def _lines(example: Example) -> list[str]:
    lines = [f"  {example.dialogue_id}[{example.turn}]  after: {_excerpt(example.context)}"]
    for name, text, score in (
        ("a", example.a, example.score_a),
        ("b", example.b, example.score_b),
    ):
        if text is not None and score is not None:
            lines.append(f"    {name} {score:>9.4g}  {_excerpt(text)}")
    return lines


def _excerpt(text: str) -> str:
    line = " ".join(text[: 4 * EXCERPT].split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"
