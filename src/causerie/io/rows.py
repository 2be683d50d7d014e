"""Tables, row by row: CSV and TSV with a header line, Parquet, and data frames in memory."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

from causerie.errors import CauserieError, RecordError
from causerie.io.jsontext import decode
from causerie.io.records import FIELDS
from causerie.io.sources import MAX_RECORD, Raw, Source, too_long

Columns: TypeAlias = Mapping[str, str]
"""Field to column: what a table calls the context, the response and so on."""

_LINE_OVERHEAD = 128  # what Python needs to hold a line: short ones would add up unseen
_ROWS = 128
_LOOK_AHEAD = 64
"""Lines after a bad row that are looked at to see whether they belong to it."""
_SOON = 8


def parse_columns(given: str) -> dict[str, str]:
    """Read `context=history,response=reply` as a command line gives it."""
    columns = {}
    for part in given.split(","):
        field, equals, column = (piece.strip() for piece in part.partition("="))
        if not (field and equals and column):
            raise CauserieError(f"columns are given as context=NAME,response=NAME, not {given!r}")
        if field in columns:
            raise CauserieError(f"{field} is two columns in {given!r}: name one")
        columns[field] = column
    check_columns(columns)
    return columns


def check_columns(columns: Columns) -> None:
    """Raise `CauserieError` if a field is none that causerie knows, or a column is two of them."""
    for field, column in columns.items():
        if field not in FIELDS:
            raise CauserieError(
                f"there is no field {field!r} for the column {column!r}: "
                f"use one of {', '.join(sorted(FIELDS))}"
            )
        if list(columns.values()).count(column) > 1:
            raise CauserieError(f"the column {column!r} cannot be two fields: name another one")


def renamed(fields: Mapping[str, object], columns: Columns) -> dict[str, object]:
    """Return the fields of a JSON record under the names that causerie has for them."""
    taken = {*columns, *columns.values()}
    kept = {name: value for name, value in fields.items() if name not in taken}
    return kept | {field: fields[name] for field, name in columns.items() if name in fields}


def read_csv(source: Source, columns: Columns) -> Iterator[Raw]:
    return _delimited(source, columns, ",")


def read_tsv(source: Source, columns: Columns) -> Iterator[Raw]:
    return _delimited(source, columns, "\t")


def read_parquet(source: Source, columns: Columns) -> Iterator[Raw]:
    import pyarrow.parquet as pq

    damaged = _damaged()
    try:
        # Its own threads would read ahead, and now and then abort the process at its end.
        table = pq.ParquetFile(source.seekable(), page_checksum_verification=True, pre_buffer=False)
        found = table.schema_arrow.names
    except damaged as error:
        raise CauserieError(f"not a readable Parquet file ({_short(error)})") from error
    names = _fields_of(found, columns)
    batches = table.iter_batches(batch_size=_ROWS, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except damaged as error:
            yield source.line + 1, RecordError(f"the rest cannot be read: {_short(error)}")
            return
        if batch is None:
            return
        for row in _values(batch):
            source.line += 1
            yield source.line, row if isinstance(row, RecordError) else _named(names, row)


def is_frame(data: object) -> bool:
    """Whether this is a table in memory: of Arrow, pandas or anything that Arrow can take over."""
    return hasattr(data, "__arrow_c_stream__") or (
        hasattr(data, "columns") and hasattr(data, "dtypes")
    )


def read_frame(data: object, columns: Columns) -> Iterator[Raw]:
    """Read a table in memory; `is_frame` says which can be read."""
    import pyarrow as pa

    unusable: tuple[type[Exception], ...] = (*_damaged(), TypeError, AttributeError)
    try:
        table = pa.table(data)
    except unusable as error:
        raise CauserieError(
            f"this table cannot be read ({_short(error)}): give every column one type"
        ) from error
    # pandas adds its index to the columns unless the rows are just numbered
    table = table.select([name for name in table.column_names if not name.startswith("__index_")])
    names = _fields_of(table.column_names, columns)
    number = 0
    for batch in table.to_batches(max_chunksize=_ROWS):
        for row in _values(batch):
            number += 1
            yield number, row if isinstance(row, RecordError) else _named(names, row)


def _fields_of(found: Sequence[str], columns: Columns) -> list[str | None]:
    """Return what each column holds; None for one whose field another column was named for.

    The names of fields are recognised in any case. `CauserieError` if there is nothing to read.
    """
    shown = ", ".join(found)[:200]
    for field, column in columns.items():
        if column not in found:
            raise CauserieError(
                f"there is no column {column!r} for {field}: there are {shown or 'none'}"
            )
    meant = {column: field for field, column in columns.items()}
    names: list[str | None] = []
    for column in found:
        folded = column.strip().lower()
        name = meant.get(column) or (folded if folded in FIELDS else column)
        names.append(None if name in columns and column not in meant else name)
    kept = [name for name in names if name is not None]
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise CauserieError(f"there are two columns named {twice!r}: rename one")
    whole = {"turns", "messages", "conversations"}
    if not {"context", "response"} <= set(kept) and whole.isdisjoint(kept):
        raise CauserieError(
            'there must be the columns "context" and "response" (or "turns", "messages" or '
            f'"conversations"), but there are {shown or "none"}: rename them, or say which is '
            "which with --columns context=NAME,response=NAME"
        )
    return names


def _named(names: Sequence[str | None], row: Sequence[object]) -> dict[str, object]:
    return {name: value for name, value in zip(names, row, strict=True) if name is not None}


def _damaged() -> tuple[type[Exception], ...]:
    """What reading a damaged table raises."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


def _values(batch: Any) -> Iterator[Sequence[object] | RecordError]:
    """The values of each row; one by one where some value cannot be read or is huge."""
    if batch.nbytes <= MAX_RECORD:
        try:
            yield from zip(*[column.to_pylist() for column in batch.columns], strict=True)
            return
        except _damaged():
            pass
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if row.nbytes > MAX_RECORD:
            yield too_long()
            continue
        try:
            yield [column[0].as_py() for column in row.columns]
        except UnicodeDecodeError:
            yield RecordError("not valid UTF-8")
        except _damaged() as error:
            yield RecordError(f"cannot be read: {_short(error)}")


def _short(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _delimited(source: Source, columns: Columns, delimiter: str) -> Iterator[Raw]:
    # The limit belongs to the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD))
    rows = _split(source, delimiter)
    _, header = next(rows, (0, None))
    if header is None:
        return
    if isinstance(header, RecordError):
        raise CauserieError(f"the header line cannot be read ({header}): correct it")
    names = _fields_of(header, columns)
    for line, row in rows:
        yield line, row if isinstance(row, RecordError) else _filled(_named(names, row))


def _filled(row: dict[str, object]) -> dict[str, object]:
    """The cells that are filled; a rating is a number, which CSV cannot say."""
    fields = {n: cell for n, cell in row.items() if cell or n in ("context", "response")}
    with suppress(KeyError, ValueError):  # no such column, or no number in it
        fields["rating"] = float(str(fields["rating"]))
    return fields


def _split(source: Source, delimiter: str) -> Iterator[tuple[int, list[str] | RecordError]]:
    """Rows with the line they start on; those after the first have as many columns, or are bad.

    A row that breaks the rules costs only its first line, unless the lines after it show that they
    belong to it, too: then these are no rows of their own.
    """
    pulled = _PulledLines(source)
    reader = csv.reader(pulled, delimiter=delimiter, strict=True)
    width = 0
    while True:
        pulled.start_row()
        bad: RecordError | None = None
        row: list[str] = []
        try:
            row = next(reader)
        except StopIteration:
            return
        except (csv.Error, RecordError) as error:
            bad = RecordError(f"not a valid row: {error}")
            pulled.push_back()
        first = pulled.first
        if bad is None and len(row) <= 1 and not "".join(row).strip():
            continue  # a blank line
        if bad is None and width and len(row) != width:
            bad = RecordError(f"has {len(row)} columns where the header has {width}")
        if bad is None:
            width = width or len(row)
            yield first, pulled.bad_encoding() or row
            continue
        rest = _lines_of_it(pulled.peek(_LOOK_AHEAD), delimiter, width, quoted=not row)
        if rest:
            bad = RecordError(f"{bad}; with it go {rest} lines after it that seem to be its own")
            pulled.skip(rest)
        yield first, bad


def _lines_of_it(lines: list[str], delimiter: str, width: int, *, quoted: bool) -> int:
    """How many of the lines after a bad row seem to be the rest of it.

    Where a quotation mark closes that nobody has opened, it was opened before: what is in between
    is one cell. After a row whose own marks are wrong (`quoted`) any stray mark says so, and a
    wrong number of columns soon after it.
    """
    closes = re.compile(rf'[^{delimiter}"\s]"(?:{delimiter}|\s*$)', re.MULTILINE)
    sound = re.compile(rf'(?:"(?:[^"]|"")*"|[^"{delimiter}\n]*)(?:{delimiter}|\r?\n|\Z)')
    taken = rest = 0
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    broken = False
    while taken < len(lines) and not broken:
        row: list[str] = []
        start = taken
        try:
            row = next(reader)
            taken = reader.line_num
        except csv.Error:
            taken, broken = len(lines), True
        text = "".join(lines[start:taken])
        at = 0
        while at < len(text) and (cell := sound.match(text, at)):
            at = cell.end()
        stray = at < len(text) and text[at] != '"'  # in a cell that no mark has opened
        ends = closes.match(text, text.find('"', at) - 1) if stray else None
        # Where no mark was wrong before, a whole row may as well speak of 40" screens.
        if ends and (quoted or len(row) != width):
            return start + text.count("\n", 0, ends.start()) + 1
        if not broken and quoted and (stray or (row and len(row) != width and taken <= _SOON)):
            rest = taken
    return rest


class _PulledLines:
    """The lines of a file, as an iterator that remembers those of the current row."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._waiting: deque[tuple[int, bytes | RecordError]] = deque()
        self._row: list[tuple[int, bytes | RecordError]] = []
        self._size = 0

    def start_row(self) -> None:
        self._row.clear()
        self._size = 0

    @property
    def first(self) -> int:
        return self._row[0][0]

    def __iter__(self) -> _PulledLines:
        return self

    def __next__(self) -> str:
        number, line = self._waiting.popleft() if self._waiting else next(self._lines)
        self._row.append((number, line))
        if isinstance(line, RecordError):
            raise line
        self._size += len(line) + _LINE_OVERHEAD
        if self._size > MAX_RECORD:
            raise too_long()
        return line.decode(errors="replace")

    def bad_encoding(self) -> RecordError | None:
        """Why the row is not UTF-8, if it is not; its lines are known to belong together."""
        try:
            for _, line in self._row:
                if isinstance(line, bytes):
                    decode(line)
        except RecordError as bad:
            return bad
        return None

    def push_back(self) -> None:
        """Give back every line of the row but the first."""
        self._waiting.extendleft(reversed(self._row[1:]))

    def peek(self, count: int) -> list[str]:
        """The next lines, which stay to be read; fewer if they are too long to be one row."""
        while len(self._waiting) < count and (pulled := next(self._lines, None)) is not None:
            self._waiting.append(pulled)
        texts, size = [], 0
        for _, line in islice(self._waiting, count):
            size += len(line) if isinstance(line, bytes) else MAX_RECORD
            if isinstance(line, RecordError) or size > MAX_RECORD:
                break
            texts.append(line.decode(errors="replace"))
        return texts

    def skip(self, count: int) -> None:
        """Pass over lines that were looked at."""
        for _ in range(count):
            self._waiting.popleft()
