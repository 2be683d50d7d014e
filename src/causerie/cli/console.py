"""What a person sees of a run: a progress bar, and at the end what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

from causerie.progress import Progress
from causerie.scoring import Run, Summary, Watcher
from causerie.text.obscenity import mask

if TYPE_CHECKING:
    from typing_extensions import Self

# More lists of worst responses than this nobody reads on a terminal; the report has them all.
WORST_LISTS = 3

# Standard output belongs to rows; people read standard error.
console = Console(stderr=True, highlight=False, soft_wrap=True)


class Display:
    """Draws any progress as a bar on standard error while it is open; notes stay above it."""

    def __init__(self) -> None:
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, state="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        if progress.note is not None:
            say(progress.note)
        if progress.note is None or progress.total is not None:
            self._bar.update(
                self._task,
                description=plain(progress.task),
                completed=progress.done,
                total=progress.total,
                state=plain(" ".join(filter(None, (_amount(progress), progress.detail)))),
            )


def _amount(progress: Progress) -> str:
    """What is counted; bytes and seconds are told well enough by the bar."""
    if progress.total is None or progress.unit in ("", "bytes", "seconds"):
        return ""
    return f"{progress.done:,.0f} of {progress.total:,.0f} {progress.unit}"


class RunDisplay(Display):
    """The display of a run of `causerie score`; bad records are reported above it."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._size = run.inputs.size
        self._what = "responses" if run.layout.level == "turn" else "dialogues"
        self._read = 0

    @property
    def watcher(self) -> Watcher:
        return Watcher(
            resumed=self._resumed,
            rejected=lambda rejected: say(f"skipped {rejected}"),
            read=self._position,
            advanced=self._advanced,
        )

    def _resumed(self, summary: Summary) -> None:
        say(f"continuing an interrupted run: {summary.items} rows are already done")
        self._advanced(summary)

    def _position(self, position: int) -> None:
        self._read = position

    def _advanced(self, summary: Summary) -> None:
        # what has been read but not scored yet does not count as done
        detail = f"{summary.items:,} {self._what}"
        self(Progress("scoring", self._read, self._size, "bytes", detail))


def plain(text: str) -> str:
    """Text of others: no markup, nothing that steers a terminal, nothing obscene."""
    return escape("".join(c if c.isprintable() else "�" for c in mask(text)))


def show_summary(run: Run, summary: Summary, written: Sequence[Path]) -> None:
    """Mean and spread per column, the worst responses, what was skipped or cut."""
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for heading in ("mean", "spread", "lowest", "highest", "scored", "unscored"):
        table.add_column(heading, justify="right")
    for name, column in summary.columns.items():
        numbers = (column.mean, column.spread, column.low, column.high)
        shown = [f"{n:.4g}" for n in numbers] if column.scored else [""] * 4
        arrow = "" if _is_sentinel(run, name) else "↑" if column.higher_is_better else "↓"
        unscored = sum(column.unscored.values())
        table.add_row(f"{name} {arrow}", *shown, str(column.scored), str(unscored or ""))
    console.print(table)
    first_columns = [m.columns(run.layout.level)[0] for m in run.layout.metrics if not m.sentinel]
    for name in first_columns[:WORST_LISTS]:
        if summary.columns[name].worst:
            console.print(f"\nworst by {name}")
            for worst in summary.columns[name].worst:
                place = worst.dialogue_id + ("" if worst.turn is None else f"[{worst.turn}]")
                console.print(f"  {worst.value:>9.4g}  {plain(place)}  {plain(worst.text)}")
                if worst.percentile is not None:
                    share = 100 - worst.percentile
                    many = "all" if share == 100 else f"{share:.0f}% of"
                    console.print(f"             worse than {many} human responses")
    console.print()
    for name, column in summary.columns.items():
        for reason, count in column.unscored.items():
            console.print(plain(f"{name}: {count} unscored: {reason}"))
    for engine, (truncated, inputs) in summary.truncated.items():
        if truncated:
            console.print(f"{engine}: {truncated} of {inputs} inputs cut to the model's window")
    if summary.nothing:
        console.print(f"{summary.nothing} dialogues had no response to score")
    if summary.tool_messages:
        console.print(f"{summary.tool_messages} tool messages left out")
    if summary.rejected:
        console.print(f"{summary.rejected} of {summary.records} records skipped (see above)")
    console.print(plain(f"signature: {run.signature}"))
    for path in written:
        console.print(plain(f"wrote {path}"))


def _is_sentinel(run: Run, column: str) -> bool:
    return any(m.sentinel and column in m.columns(run.layout.level) for m in run.layout.metrics)


def say(text: str) -> None:
    """One line to whoever watches."""
    console.print(plain(text))


def show_results(results: Mapping[str, Any]) -> None:
    """What was measured, one line each."""
    table = Table(box=None, pad_edge=False)
    table.add_column("measured on validation data")
    table.add_column("value", justify="right")
    for name, value in results.items():
        table.add_row(plain(name), plain(str(value)))
    console.print(table)
