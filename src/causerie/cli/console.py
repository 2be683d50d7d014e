"""Output for people: progress bars, notes, tables and summaries."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer
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

from causerie.progress import Progress, printable
from causerie.text.masking import mask

if TYPE_CHECKING:
    from typing_extensions import Self

    from causerie.render import tables
    from causerie.report import Quote
    from causerie.scoring import Summary

# Maximum number of lists of worst responses on a terminal; the report has all of them.
WORST_LISTS = 3
MAX_NOTES = 20
"""Number of notes shown that begin with the same word, such as those about skipped records;
further ones are only counted."""
MAX_NOTE = 500
"""Maximum length of a note in characters."""
EXCERPT = 90
"""Maximum length of a response's excerpt in characters."""

# Standard output is for rows of data; messages for people go to standard error.
console = Console(stderr=True, highlight=False, soft_wrap=True)


class PlainTable(Table):
    """A table without lines, whose cells may contain untrusted text."""

    def __init__(self, *headings: str) -> None:
        super().__init__(box=None, pad_edge=False)
        for heading in headings:
            self.add_column(heading, overflow="fold")

    def add_row(self, *cells: Any, **style: Any) -> None:
        super().add_row(*(plain(str(cell)) for cell in cells), **style)


class Notes:
    """Shows notes; of many that begin with the same word, only the first ones and a count."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Show a note, unless there were many like it."""
        word = text.partition(" ")[0]
        self._counts[word] += 1
        if self._counts[word] <= MAX_NOTES:
            say(text if len(text) <= MAX_NOTE else text[:MAX_NOTE] + "…")

    @property
    def skipped(self) -> int:
        """Number of notes about skipped records."""
        return self._counts["skipped"]

    def close(self) -> None:
        """Show how many notes were only counted."""
        for word, count in self._counts.items():
            if count > MAX_NOTES:
                say(f"{word} ...: {count - MAX_NOTES:,} more lines like this")


class Display:
    """Shows progress as a bar on standard error; notes stay above it."""

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
        self._notes = Notes()
        self.note = self._notes.add

    def end(self) -> None:
        """Exit with status 1 if records were skipped."""
        if self._notes.skipped:
            raise typer.Exit(1)

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
        self._notes.close()

    def __call__(self, progress: Progress) -> None:
        if progress.note is not None:
            self.note(progress.note)
        if progress.note is None or progress.total is not None:
            self._bar.update(
                self._task,
                description=plain(progress.task),
                completed=progress.done,
                total=progress.total,
                state=plain(" ".join(filter(None, (_amount(progress), progress.detail)))),
            )


def _amount(progress: Progress) -> str:
    """Return the amount done in words; for bytes and seconds the bar is enough."""
    if progress.total is None or progress.unit in ("", "bytes", "seconds"):
        return ""
    return f"{progress.done:,.0f} of {progress.total:,.0f} {progress.unit}"


def plain(text: str) -> str:
    """Return untrusted text without markup, control characters and obscene words."""
    return escape(printable(mask(text)))


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return the beginning of an untrusted text as one line."""
    line = " ".join(text[: 4 * length].split())
    return plain(line if len(line) <= length else line[: length - 1] + "…")


def show_table(table: tables.Table) -> None:
    """Show a table on standard error."""
    shown = PlainTable()
    for heading, letter in zip(table.headings, table.alignment, strict=True):
        shown.add_column(plain(str(heading)), justify="left" if letter == "l" else "right")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)


def show_summary(summary: Summary, signature: str, written: Sequence[Path]) -> None:
    """Show mean and spread per column, the worst responses, and what was skipped or cut."""
    for sentence in summary.verdict():
        say(sentence)
    show_table(summary.table())
    columns = summary.columns
    first: dict[str, str] = {}  # by metric, the column whose worst responses are listed
    for name, figures in columns.items():
        if figures.worst and figures.column.better:
            first.setdefault(name.partition(".")[0], name)
    for name in list(first.values())[:WORST_LISTS]:
        console.print()
        say(f"worst by {name}")
        for quote in columns[name].worst:
            _show_quote(quote)
    console.print()
    for name, figures in columns.items():
        for reason, count in figures.unscored.items():
            say(f"{name}: {count} unscored: {reason}")
    for engine, (cut, seen) in summary.cuts.items():
        if cut:
            say(f"{engine}: {cut} of {seen} inputs cut to the model's window")
    for note in summary.notes():
        say(note)
    say(f"signature: {signature}")
    for path in written:
        say(f"wrote {path}")


def _show_quote(quote: Quote) -> None:
    place = quote.dialogue_id + ("" if quote.turn is None else f"[{quote.turn}]")
    value = "empty" if quote.value is None else f"{quote.value:.4g}"
    console.print(f"  {value:>9}  {plain(place)}  {excerpt(quote.text)}")
    if quote.percentile is not None:
        share = 100 - quote.percentile
        many = "all" if share == 100 else f"{share:.0f}% of"
        console.print(f"             worse than {many} human responses")


def say(text: str) -> None:
    """Show one line on standard error."""
    console.print(plain(text))


def show(text: str) -> None:
    """Write the result of a command, one or several lines, to standard output."""
    lines = (printable(mask(line)) for line in text.split("\n"))
    sys.stdout.write("\n".join(lines) + "\n")


def show_row(row: Mapping[str, Any]) -> None:
    """Write a row as a line of JSON to standard output at once, as a reader may be waiting.

    Nothing is masked, because it is data; control characters are escaped.
    """
    line = json.dumps(row, ensure_ascii=False)
    if not line.isprintable():
        line = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show_results(results: Mapping[str, Any]) -> None:
    """Show measured results, one per line."""
    table = PlainTable("measured on validation data")
    table.add_column("value", justify="right")
    for name, value in results.items():
        table.add_row(name, value)
    console.print(table)
