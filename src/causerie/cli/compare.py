"""`causerie compare`: is the second file better than the first, and by how much?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import chosen_plan, judge_of_pairs
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.bench.compare import ColumnComparison, CompareResult
    from causerie.scoring.gates import Verdict
    from causerie.stats import Estimate

_EXAMPLES = """
**Examples**

    causerie compare old.jsonl new.jsonl

    causerie compare old.csv new.csv --metrics bertscore,length --out comparison.md

    causerie compare old.jsonl new.jsonl --metrics cosine --fail-if 'cosine < -0.02' --significant

    causerie compare old.jsonl new.jsonl --fail-if 'percentile(density) < 40' --junit gate.xml

    causerie compare old.jsonl new.jsonl --judge --judge-model qwen2.5-coder-1.5b

Exit status: 0 every record was read and every metric compared something, 1 some records were
skipped or a metric scored nothing, 2 nothing could be done, no metric but sentinels scored anything
or a condition could not be decided, 3 a --fail-if condition holds, 4 the environment failed (no
room, no permission, a locked file, closed output).
"""


@options.engine_options
@options.judge_options
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Responses of the old system.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Responses of the new system.")],
    metrics: options.Metrics = None,
    speaker: options.Speaker = None,
    fail_if: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="CONDITION",
            help="Exit with 3 if it holds: 'cosine < -0.02' for the difference B minus A; of B "
            "alone 'mean(cosine) < 0.3', 'percentile(density) < 40', 'unscored(cosine) > 5%' or "
            "'skipped > 1%'. Several may be given.",
        ),
    ] = None,
    significant: Annotated[
        bool,
        typer.Option(
            "--significant",
            help="A difference in --fail-if must hold for the whole 95% interval.",
        ),
    ] = False,
    junit: options.JUnit = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out", "-o", help="Also write everything (.json), or the table (.md, .tex, .csv)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for resampling and permutations.")] = 0,
    set_: options.SetOption = None,
    hypotheses: options.Hypotheses = None,
    input_format: options.InputFormat = None,
    columns: options.InputColumns = None,
    scores: options.ScoresFile = None,
    refresh: options.Refresh = False,
    preference: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Also let a judge choose the better of two replies, shown in both orders.",
            rich_help_panel="Judge",
        ),
    ] = False,
    *,
    judge: Any,
    settings: Any,
) -> None:
    from causerie.bench.compare import compare_responses
    from causerie.bench.pairing import responses_of
    from causerie.cli.console import Display, say
    from causerie.io import check_inputs, parse_columns, read
    from causerie.render.tables import check_suffix
    from causerie.scoring import Scorer, ScoreStore
    from causerie.scoring.gates import conclude, parse_condition, write_junit

    if a == b == "-":
        raise CauserieError(
            "only one of the two inputs can be standard input: give a file for the other"
        )
    if out:
        check_suffix(out)
    chooser = None
    if preference:
        chooser, set_, judge = judge_of_pairs(metrics, set_ or [], judge)
    plan = chosen_plan(metrics, set_, hypotheses, settings, judge=judge, speaker=speaker)
    conditions = [parse_condition(text, plan.columns, "difference") for text in fail_if or []]
    for given, met in (("--junit", junit is None), ("--significant", not significant)):
        if not (met or conditions):
            raise CauserieError(f"{given} has no effect without --fail-if: give both or neither")
    named = parse_columns(columns) if columns is not None else {}
    check_inputs((a, b), input_format, named)
    old, new = (
        responses_of(read(path, input_format, columns=named), path, speaker) for path in (a, b)
    )
    with ScoreStore(scores) as store, Display() as watch:
        for rejected in (*old.rejected, *new.rejected):
            watch.note(f"skipped {rejected}")
        scorer = Scorer(plan, store, refresh=refresh)
        result = compare_responses(old, new, scorer, judge=chooser, seed=seed, watch=watch)
    verdicts = [result.judge(condition, significant=significant) for condition in conditions]
    _show(result)
    if out:
        _write(out, result, verdicts, significant)
    if junit:
        write_junit(junit, f"causerie compare {a} {b}", verdicts)
    unscored = {
        one.column: one.unscored or [one.difference.reason or "there is nothing to compare"]
        for one in result.columns
        if one.difference.value is None
    }
    skipped = bool(old.rejected or new.rejected)
    raise typer.Exit(conclude(plan, verdicts, unscored, skipped=skipped, say=say))


compare.__doc__ = (
    "Compare two files of responses: difference, interval, p-value and win rate per metric.\n\n"
    "Where both files hold the same contexts (the same user turns, or the same "
    "context rows), responses are compared in pairs. All differences are B minus A. An empty "
    "reply counts as the worst.\n" + _EXAMPLES
)


def _write(out: Path, result: CompareResult, verdicts: list[Verdict], significant: bool) -> None:
    from causerie.io import write_whole
    from causerie.render.tables import write_tables

    if out.suffix.lower() != ".json":
        write_tables(out, result.rendered())
        return
    held = [{"condition": str(v.condition), "holds": v.holds, "value": v.value} for v in verdicts]
    content = {**result.to_json(), "significant": significant, "fail_if": held}
    write_whole(out, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def _show(result: CompareResult) -> None:
    """Write the result to standard output."""
    from rich.console import Console

    from causerie.cli.console import PlainTable, plain

    page = Console(highlight=False, soft_wrap=True)
    for name, side in (("a", result.a), ("b", result.b)):
        skipped = f", {side.rejected} of {side.records} records skipped" if side.rejected else ""
        empty = f", {side.empty} of them empty: they count as the worst" if side.empty else ""
        page.print(
            plain(
                f"{name}: {side.source}: {side.responses} responses "
                f"in {side.dialogues} dialogues or contexts{empty}{skipped}"
            )
        )
    page.print(result.how)
    page.print()
    table = PlainTable("metric")
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
            what = "differ most" if result.pairs is not None else "worst"
            page.print()
            page.print(plain(f"{what} by {column.column}"))
            for example in column.examples:
                for line in example.lines():
                    page.print(plain(line))
    page.print()
    page.print(plain(f"signature: {result.signature}"))


def _cells(column: ColumnComparison) -> list[str]:
    def number(value: float | None, form: str = ".4g") -> str:
        return "" if value is None else format(value, form)

    return [
        column.name,
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
