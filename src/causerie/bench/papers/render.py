"""A reproduction as text: Markdown for documents, aligned columns for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from causerie.bench.papers.printed import Block, Cell, Column, Row
from causerie.bench.papers.run import Ours, ReproducedTable, Reproduction
from causerie.render.tables import Marked, Table, markdown_table


def reproduction_markdown(reproduction: Reproduction) -> str:
    """Return the paper's tables as Markdown, each cell `printed / ours`."""
    return _document(reproduction, _Style("## {}", "### {}", "**{}**", "{}  ", _markdown_lines))


def reproduction_text(reproduction: Reproduction, width: int = 100) -> str:
    """Return the tables for a terminal; those wider than `width` continue below themselves."""
    grid = partial(_text_tables, width=width)
    return _document(reproduction, _Style("{}", "{}", "{}", "{}", grid))


_Rows: TypeAlias = Sequence[tuple[str | None, Sequence[str]]]
"""Cells of rows, each with the name of the group that begins with it, if any."""
_Grid: TypeAlias = Callable[[Sequence[str], _Rows], list[str]]


@dataclass(frozen=True)
class _Style:
    """How the parts of a document are written: templates, and a function for lines of a table."""

    paper: str
    table: str
    block: str
    line: str
    grid: _Grid


def _document(reproduction: Reproduction, style: _Style) -> str:
    paper = reproduction.paper
    lines = [style.paper.format(paper.title), "", _legend(reproduction), paper.differs]
    for table in reproduction.tables:
        lines += ["", style.table.format(_title(table))]
        for block, ours in zip(table.printed.blocks, table.ours, strict=True):
            lines += ["", *([style.block.format(block.title), ""] if block.title else [])]
            lines += style.grid(_head(block), _rows(block, ours))
        markers = [f"{sign}: {meaning}" for sign, meaning in table.printed.markers.items()]
        if below := [*markers, *table.printed.notes]:
            lines += ["", *map(style.line.format, below)]
    if reproduction.footnotes:
        lines += ["", style.table.format("Footnotes"), ""]
        lines += [style.line.format(f"({n}) {t}") for n, t in enumerate(reproduction.footnotes, 1)]
    return "\n".join([*lines, "", f"signature: {reproduction.signature}", ""])


def _title(table: ReproducedTable) -> str:
    number = table.printed.number
    where = "In the text" if number == "text" else f"Table {number}"
    return f"{where}: {table.printed.title}"


def _head(block: Block) -> list[str]:
    return ["method", *(column.label for column in block.columns)]


def _rows(block: Block, ours: Sequence[Sequence[Ours]]) -> list[tuple[str | None, list[str]]]:
    rows: list[tuple[str | None, list[str]]] = []
    group = None
    for row, own in zip(block.rows, ours, strict=True):
        cells = map(_cell, row.cells, own, block.columns)
        rows.append((row.group if row.group != group else None, [_method(row), *cells]))
        group = row.group
    return rows


def _method(row: Row) -> str:
    return f"{row.method} ({row.note})" if row.note else row.method


def _legend(reproduction: Reproduction) -> str:
    cells = (
        cell
        for table in reproduction.tables
        for block in table.ours
        for row in block
        for cell in row
    )
    found = list(cells)
    beside = any(cell.among_systems for cell in found)
    text = "Each cell: printed / ours" + " / ours without human responses" * beside + "."
    if any(cell.estimate and cell.estimate.low is not None for cell in found):
        text += " Brackets: 95% interval by dialogue or context; a star: it leaves out 0."
    return text


def _cell(cell: Cell, ours: Ours, column: Column) -> str:
    # As many decimals as in the paper.
    decimals = len(cell.printed.split("±")[0].rstrip("*+").partition(".")[2])
    if cell.value is None:
        decimals = 3 if column.unit == 1 else 2
    digits = f".{decimals}f"
    numbers = []
    for estimate in (ours.estimate, ours.among_systems):
        if estimate is not None and estimate.value is not None:
            numbers.append(f"{estimate.value / column.unit:{digits}}")
    if numbers and ours.estimate is not None:
        ends = (ours.estimate.low, ours.estimate.high)
        shown = [f"{end / column.unit:{digits}}" for end in ends if end is not None]
        interval = f" [{', '.join(shown)}]" if shown else ""
        numbers[0] += f"{'*' * ours.significant}{interval}"
    said = " / ".join([cell.printed, *numbers])
    if not ours.footnotes:
        return said
    notes = "".join(f"({number})" for number in ours.footnotes)
    return f"{said} {notes}" if numbers else f"{said} / {notes}"


def reproduction_tables(reproduction: Reproduction) -> list[Table]:
    """Return every block of every table."""
    tables = []
    for table in reproduction.tables:
        for block, ours in zip(table.printed.blocks, table.ours, strict=True):
            title = f"{_title(table)} ({block.title})" if block.title else _title(table)
            tables.append(_table(_head(block), _rows(block, ours), title))
    return tables


def _table(head: Sequence[str], rows: _Rows, title: str = "") -> Table:
    cells: list[Sequence[str | Marked]] = []
    for group, row in rows:
        if group:
            cells.append([Marked(group, "emphasis"), *[""] * (len(head) - 1)])
        cells.append(row)
    return Table(head, cells, title)


def _markdown_lines(head: Sequence[str], rows: _Rows) -> list[str]:
    return [markdown_table(_table(head, rows))]


def _text_tables(head: Sequence[str], rows: _Rows, width: int) -> list[str]:
    everything = [head, *(cells for _, cells in rows)]
    widths = [max(len(cells[i]) for cells in everything) for i in range(len(head))]
    lines: list[str] = []
    start = 1
    while start < len(head):
        end = start + 1
        while end < len(head) and sum(widths[i] + 2 for i in (0, *range(start, end + 1))) <= width:
            end += 1
        shown = [0, *range(start, end)]
        lines += [""] if start > 1 else []
        lines.append(_aligned(head, shown, widths))
        for group, cells in rows:
            lines += [f"{group}:"] if group else []
            lines.append(_aligned(cells, shown, widths))
        start = end
    return lines


def _aligned(cells: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> str:
    first, *others = shown
    columns = [cells[first].ljust(widths[first]), *(cells[i].rjust(widths[i]) for i in others)]
    return "  ".join(columns).rstrip()
