"""Tables, row by row: CSV and TSV with a header line, Parquet, and data frames in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from causerie.errors import CauserieError, RecordError
from causerie.io.delimited import split_rows
from causerie.io.records import FIELDS
from causerie.io.sources import MAX_RECORD, Raw, Source, too_long

Columns: TypeAlias = Mapping[str, str]
"""Field to column: what a table calls the context, the response and so on."""

_ROWS = 128


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
    rows = split_rows(source, delimiter)
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
