"""`causerie metrics`: the installed metrics, their options, columns and artifacts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.table import Table

    from causerie.metrics.base import Column


def metrics(
    name: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it at run time, on 3.10 too
        typer.Argument(
            metavar="METRIC", help="Show everything about one metric.", show_default=False
        ),
    ] = None,
) -> None:
    """List the metrics, one line each: what it measures, its direction, what it needs.

    With a name, show its options, its columns, its shipped artifacts and the settings of
    `causerie train`.
    """
    from rich.console import Console

    # Without a terminal, lines are wide enough for one metric each.
    page = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if name is None:
        page.print(_overview())
    else:
        _show(name, page)


def _overview() -> Table:
    from causerie import metrics as registry
    from causerie.errors import CauserieError

    table = _table("metric", "better", "needs", "what it measures")
    for name in registry.names():
        try:
            metric = registry.load_metric(name)
            better = _directions(metric.columns("turn"))
        except CauserieError as error:  # another package's metric may be broken
            table.add_row(name, "", "", f"cannot be used: {error}")
            continue
        table.add_row(name, better, ", ".join(sorted(metric.needs)), metric.summary)
    return table


def _show(name: str, page: Any) -> None:
    from causerie import metrics as registry
    from causerie.cli.console import plain
    from causerie.training.trainable import Trainable

    metric = registry.load_metric(name)
    needs = f"; needs {', '.join(sorted(metric.needs))}" if metric.needs else ""
    page.print(plain(f"{metric.name}: {metric.summary}{needs}") + "\n")
    options = _options(type(metric), "option")
    if options.row_count:
        page.print(options)
    else:
        page.print("no options")
    turn, dialogue = metric.columns("turn"), metric.columns("dialogue")
    page.print()
    page.print(_columns(metric.name, "turn" if dialogue != turn else "turn or dialogue", turn))
    if dialogue != turn:
        page.print()
        page.print(_columns(metric.name, "dialogue", dialogue))
    if artifacts := _artifacts(metric.name):
        page.print()
        page.print(artifacts)
    if isinstance(metric, Trainable):
        page.print()
        page.print(_options(metric.config, f"setting of `train {metric.name}`"))


def _options(kind: type[DataclassInstance], heading: str) -> Table:
    from dataclasses import fields
    from typing import get_type_hints

    from causerie.options import choices_of

    table = _table(heading, "default", "can be", "what it does")
    hints = get_type_hints(kind)
    for one in fields(kind):
        said = (one.name, str(one.default), choices_of(hints[one.name]))
        table.add_row(*said, one.metadata.get("help", ""))
    return table


def _columns(name: str, level: str, columns: tuple[Column, ...]) -> Table:
    table = _table(f"column (per {level})", "better", "range", "what it measures")
    for column in columns:
        low, high = ("" if end is None else f"{end:g}" for end in column.range)
        span = f"{low} to {high} {column.unit}" if low or high else column.unit
        extra = " (with percentiles)" if column.calibrated else ""
        shown = f"{name}.{column.name}" if column.name else name
        table.add_row(shown, _directions((column,)), span.strip(), column.help + extra)
    return table


def _artifacts(name: str) -> Table | None:
    """Return a table of the installed artifacts of a metric; None if there are none."""
    from causerie.metrics import find
    from causerie.models.artifact import ArtifactInfo, shipped_artifacts

    ways = {name: "the default", getattr(find(name), "research", None): "--research"}
    table = _table("artifact", "encoder", "commercial use", "how to use it")
    for artifact in shipped_artifacts(name):
        info = ArtifactInfo.find(artifact)
        how = ways.get(artifact, f"--metrics {name}:artifact={artifact}")
        table.add_row(artifact, info.backbone, "free" if info.free else "not known to be free", how)
    return table if table.row_count else None


def _directions(columns: tuple[Column, ...]) -> str:
    found = {"sentinel" if c.sentinel else c.better or "neither" for c in columns}
    return " or ".join(sorted(found))


def _table(*headings: str) -> Table:
    from causerie.cli.console import PlainTable

    return PlainTable(*headings)
