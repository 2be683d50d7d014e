"""What a person sees of a run: a progress bar, and at the end what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from causerie.io import Rejected
from causerie.scoring import Run, Summary, Watcher
from causerie.text.obscenity import mask

if TYPE_CHECKING:
    from typing_extensions import Self

    from causerie.training import loop as training

# More lists of worst responses than this nobody reads on a terminal; the report has them all.
WORST_LISTS = 3

# Standard output belongs to rows; people read standard error.
console = Console(stderr=True, highlight=False, soft_wrap=True)


class Display:
    """Shows its progress as long as it is open."""

    _progress: Progress

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


class RunDisplay(Display):
    """A progress line while a run goes on; bad records are reported above it."""

    def __init__(self, run: Run) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("scoring"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._what = "responses" if run.layout.level == "turn" else "dialogues"
        self._task = self._progress.add_task("", total=run.inputs.size)
        self._read = 0

    @property
    def watcher(self) -> Watcher:
        return Watcher(
            resumed=self._resumed,
            rejected=self._rejected,
            read=self._position,
            advanced=self._advanced,
        )

    def _resumed(self, summary: Summary) -> None:
        console.print(f"continuing an interrupted run: {summary.items} rows are already done")
        self._advanced(summary)

    def _rejected(self, rejected: Rejected) -> None:
        console.print(plain(f"skipped {rejected}"))

    def _position(self, position: int) -> None:
        self._read = position

    def _advanced(self, summary: Summary) -> None:
        # what has been read but not scored yet does not count as done
        description = f"{summary.items:,} {self._what}"
        self._progress.update(self._task, completed=self._read, description=description)


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


class TrainingDisplay(Display):
    """A progress bar with loss and validation scores; where there is no terminal, lines."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, state="")

    def watch(self, progress: training.Progress) -> None:
        scores = " ".join(f"{name} {value:.4f}" for name, value in progress.scores.items())
        state = f"loss {progress.loss:.4f} {scores}"
        self._progress.update(
            self._task, completed=progress.step, total=progress.steps, state=state
        )
        if progress.scores_step == progress.step:
            say(f"step {progress.step:,} of {progress.steps:,}: {state}")

    def say(self, text: str) -> None:
        say(text)


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


@contextmanager
def working() -> Iterator[Callable[[str, float, float], None]]:
    """A bar over all the work, with what is going on in front of it."""
    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None)

    def watch(what: str, done: float, total: float) -> None:
        bar.update(task, description=what, completed=done, total=total)

    with bar:
        yield watch
