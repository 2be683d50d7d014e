"""The numbers that the five papers print, as data: one JSON file per paper.

A cell is written as printed: "0.294*" has a marker, "0.227±0.018" a standard deviation over
seeds, and "?" could not be read with certainty in our copy of the paper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from causerie.bench.papers.protocols import protocols
from causerie.errors import CauserieError

PAPERS = ("causalscore", "density", "grade", "cf-lstm", "cpmi")

RANKINGS = ("recall@1", "mrr")
"""Statistics of finding the true response in dialogues, which need no judgement."""

_CELL = re.compile(r"(?P<value>-?\d+(\.\d+)?)(?P<marker>[*+])?(±(?P<deviation>\d+\.\d+))?")


@dataclass(frozen=True)
class Column:
    """What the numbers in a column mean."""

    label: str
    statistic: str
    """One of the protocol's statistics; "average" is the mean of the row's other cells."""
    protocol: str | None = None
    """Name of the protocol that reproduces the number; None if the data is not public."""
    corpus: str | None = None
    """Corpus whose true responses are to be found, for the statistics in `RANKINGS`."""
    unit: float = 1.0
    """Value of a printed 1: 0.01 where the paper prints per cent."""


@dataclass(frozen=True)
class Cell:
    """One printed number."""

    printed: str
    value: float | None
    """The number in natural units (a correlation from -1 to 1); None if it is illegible."""
    marker: str | None
    """Sign behind the number, explained in the table's `markers`."""
    deviation: float | None


@dataclass(frozen=True)
class Row:
    """One method of a table."""

    method: str
    """Name of the method, as printed."""
    metric: str | None
    """Its name in causerie, `metric` or `metric.dimension`; None if causerie does not have it.

    A metric with dimensions is compared by the dimension of the column's protocol, or else by its
    `overall`.
    """
    cells: tuple[Cell, ...]
    """The numbers, one per column."""
    variant: str | None = None
    """Ablation as which the metric was trained; None for the metric itself."""
    group: str | None = None
    note: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the metric in this row, where they differ from its defaults."""


@dataclass(frozen=True)
class Block:
    """Rows under the same columns; tables with several dimensions or sets have several blocks."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    number: str
    """Number as printed; "text" for numbers in the running text."""
    title: str
    blocks: tuple[Block, ...]
    markers: Mapping[str, str]
    notes: tuple[str, ...]
    models: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Research artifact that is the paper's model of a domain, by metric and judged set."""


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    differs: str
    """One sentence on what the authors had and we do not."""
    tables: tuple[Table, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants that have to be trained for some rows."""
        rows = (row for table in self.tables for block in table.blocks for row in block.rows)
        return tuple(dict.fromkeys(row.variant for row in rows if row.variant))

    def table(self, number: str) -> Table:
        for table in self.tables:
            if table.number == number:
                return table
        known = ", ".join(table.number for table in self.tables)
        raise CauserieError(f"{self.name} has no table {number!r} here: use one of {known}")


@cache
def printed_tables(paper: str) -> Paper:
    """Return the printed tables of one of `PAPERS`."""
    if paper not in PAPERS:
        raise CauserieError(f"there is no paper {paper!r}: use one of {', '.join(PAPERS)}")
    text = files("causerie.bench.papers").joinpath(f"{paper}.json").read_text(encoding="utf-8")
    return parse_paper(json.loads(text))


def parse_paper(data: Mapping[str, Any]) -> Paper:
    """Return a paper's file as objects; raise ValueError where it is inconsistent."""
    tables = tuple(_table(table, data["paper"]) for table in data["tables"])
    return Paper(data["paper"], data["title"], data["differs"], tables)


def _table(data: Mapping[str, Any], paper: str) -> Table:
    where = f"{paper}, table {data['number']}"
    markers: Mapping[str, str] = data.get("markers", {})
    blocks = tuple(_block(block, where) for block in data["blocks"])
    for row in (row for block in blocks for row in block.rows):
        for cell in row.cells:
            if cell.marker is not None and cell.marker not in markers:
                raise ValueError(f"{where}: {row.method}: markers do not explain {cell.marker!r}")
    notes, models = tuple(data.get("notes", ())), data.get("models", {})
    return Table(data["number"], data["title"], blocks, markers, notes, models)


def _block(data: Mapping[str, Any], where: str) -> Block:
    columns = tuple(Column(**column) for column in data["columns"])
    for column in columns:
        if column.corpus is not None and column.statistic not in RANKINGS:
            raise ValueError(f"{where}: {column.statistic!r} does not rank true responses")
        if column.protocol is None:
            continue
        if column.protocol not in protocols():
            raise ValueError(f"{where}: unknown protocol {column.protocol!r}")
        if column.statistic not in protocols()[column.protocol].statistics:
            raise ValueError(f"{where}: {column.protocol!r} has no {column.statistic!r}")
    rows = tuple(_row(row, columns, where) for row in data["rows"])
    return Block(data["title"], columns, rows)


def _row(data: Mapping[str, Any], columns: tuple[Column, ...], where: str) -> Row:
    values = data["values"]
    if len(values) != len(columns):
        raise ValueError(
            f"{where}: {data['method']} has {len(values)} cells for {len(columns)} columns"
        )
    try:
        cells = tuple(_cell(v, c.unit) for v, c in zip(values, columns, strict=True))
    except ValueError as error:
        raise ValueError(f"{where}: {data['method']}: {error}") from None
    others = {key: data.get(key) for key in ("variant", "group", "note")}
    return Row(data["method"], data["metric"], cells, options=data.get("options", {}), **others)


def _cell(printed: str, unit: float) -> Cell:
    if printed == "?":
        return Cell(printed, None, None, None)
    match = _CELL.fullmatch(printed)
    if match is None:
        raise ValueError(f"{printed!r} is not a printed number")
    deviation = match["deviation"]
    return Cell(
        printed,
        _scaled(match["value"], unit),
        match["marker"],
        None if deviation is None else _scaled(deviation, unit),
    )


def _scaled(number: str, unit: float) -> float:
    return round(float(number) * unit, 9)  # without the rounding error of the product
