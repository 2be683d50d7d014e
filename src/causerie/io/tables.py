"""Tables of scores: written whole or not at all, read back as they were.

A column is text (`str`), a whole number (`int`), a number (`float`) or a JSON object
(`dict`), never guessed from its values: `types` says which, and what it does not name is in
`KEYS` or a number. Any value may be None. In CSV and TSV, None and the empty text look the
same and are read back as None; text that a spreadsheet would take for a formula is written
with an apostrophe in front, and read back without it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeAlias

from causerie.errors import CauserieError
from causerie.io.atomic import atomic_write
from causerie.io.delimited import rows_of
from causerie.io.jsontext import plain

if TYPE_CHECKING:
    import pyarrow

Block: TypeAlias = Mapping[str, Sequence[Any]]
"""Some rows that follow each other, column by column."""

KEYS: Mapping[str, type] = {
    "dialogue_id": str,
    "turn": int,
    "speaker": str,
    "file": str,
    "system": str,
    "message": int,
    "text": str,
}
"""The columns that say what a row is about."""

ABOUT = "causerie"
"""What Parquet files call that which is said about the table."""

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = (".jsonl", *_DELIMITERS, ".parquet")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ROWS = 10_000
_BLOCK = 128
"""Rows that are made a block; a block is held whole."""


def write_table(
    rows: Iterable[Mapping[str, object]],
    columns: Sequence[str],
    path: Path,
    types: Mapping[str, type] | None = None,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write rows as .jsonl, .csv, .tsv (each also .gz) or .parquet, by the suffix of `path`.

    A column that a row lacks is null, and so is a number that is not finite. A Parquet file also
    holds what is said `about` the table; the others have no place for it.
    """
    kinds = _kinds(columns, types)
    write_blocks(_blocks(rows, kinds), path, kinds, about)


def write_blocks(
    blocks: Iterable[Block],
    path: Path,
    types: Mapping[str, type],
    about: Mapping[str, object] | None = None,
) -> None:
    """Write rows that come in blocks, each with all of these columns, as `write_table` does."""
    suffix, zipped = _format(path)
    typed = ([_typed(block[name], kind) for name, kind in types.items()] for block in blocks)
    with atomic_write(path) as file:
        if suffix == ".parquet":
            _write_parquet(typed, types, file, about or {})
            return
        # No name and time in the gzip header: the same rows give the same bytes.
        outer = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if zipped else file
        text = io.TextIOWrapper(outer, encoding="utf-8", newline="")
        if suffix == ".jsonl":
            _write_jsonl(typed, types, text)
        else:
            _write_delimited(typed, types, text, _DELIMITERS[suffix])
        text.flush()
        text.detach()
        if zipped:
            outer.close()


def read_table(path: Path, types: Mapping[str, type] | None = None) -> Iterator[dict[str, object]]:
    """The rows of a table that `write_table` wrote with these types."""
    suffix, zipped = _format(path)
    try:
        if suffix == ".parquet":
            yield from _read_parquet(path, types)
            return
        with (gzip.open if zipped else open)(path, "rt", encoding="utf-8", newline="") as text:
            if suffix == ".jsonl":
                yield from map(_row, text)
            else:
                yield from _read_delimited(text, types, _DELIMITERS[suffix])
    except FileNotFoundError as error:
        raise CauserieError(f"{path} does not exist: check its name") from error
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, csv.Error) as error:
        why = str(error).partition("\n")[0]
        raise CauserieError(
            f"{path} is not a table that causerie wrote ({why}): write it again"
        ) from error


def read_about(path: Path | BinaryIO) -> dict[str, Any]:
    """What a Parquet file says about its table; nothing where it says nothing."""
    import pyarrow.parquet as pq

    found = (pq.read_schema(path).metadata or {}).get(ABOUT.encode(), b"{}")
    return _row(found.decode())


def parquet_bytes(
    blocks: Iterable[Block], types: Mapping[str, type], about: Mapping[str, object]
) -> bytes:
    """What `write_blocks` would write as .parquet."""
    file = io.BytesIO()
    typed = ([_typed(block[name], kind) for name, kind in types.items()] for block in blocks)
    _write_parquet(typed, types, file, about)
    return file.getvalue()


def check_table_path(path: Path) -> None:
    """Raise now what `write_table` would raise at the end of a long run."""
    _format(path)


def is_table(name: str) -> bool:
    """Whether a file of that name would be a table, by its suffix."""
    return name.lower().removesuffix(".gz").endswith(_SUFFIXES)


def _format(path: Path) -> tuple[str, bool]:
    """The suffix that says the format, and whether the file is gzipped."""
    zipped = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if zipped else path).suffix.lower()
    if suffix not in _SUFFIXES or (zipped and suffix == ".parquet"):
        raise CauserieError(
            f"{path} has no known suffix: use {', '.join(_SUFFIXES)} (.gz too, but for .parquet)"
        )
    return suffix, zipped


def _kinds(columns: Sequence[str], types: Mapping[str, type] | None) -> dict[str, type]:
    known = {**KEYS, **(types or {})}
    return {name: known.get(name, float) for name in columns}


def _blocks(rows: Iterable[Mapping[str, object]], names: Iterable[str]) -> Iterator[Block]:
    """Rows as blocks; what a row lacks is None."""
    rest = iter(rows)
    while some := list(islice(rest, _BLOCK)):
        yield {name: [row.get(name) for row in some] for name in names}


def _typed(values: Sequence[Any], kind: type) -> list[Any]:
    """A column's values as its type: what a table holds is only ever one of four types."""
    if kind is dict:
        return [None if value is None else plain(value, "value") for value in values]
    if kind is float:
        return [
            number if value is not None and isfinite(number := float(value)) else None
            for value in values
        ]
    return [None if value is None else kind(value) for value in values]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _row(line: str) -> dict[str, object]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("a line is not an object")
    return row


_WRITTEN: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: int.__repr__,
    float: float.__repr__,
    dict: _json,
}
"""How JSON has a value of each type."""


def _write_jsonl(
    blocks: Iterable[list[list[Any]]], types: Mapping[str, type], text: TextIO
) -> None:
    # One template for all rows: an encoder looks at every key of every row again.
    names = [_json(name).replace("%", "%%") for name in types]
    template = "{" + ", ".join(f"{name}: %s" for name in names) + "}\n"
    for block in blocks:
        columns = [
            ["null" if value is None else written(value) for value in values]
            for values, written in zip(
                block, map(_WRITTEN.__getitem__, types.values()), strict=True
            )
        ]
        text.write("".join([template % row for row in zip(*columns, strict=True)]))


def _write_delimited(
    blocks: Iterable[list[list[Any]]], types: Mapping[str, type], text: TextIO, delimiter: str
) -> None:
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow([_disarmed(name) for name in types])
    for block in blocks:
        columns = [_cells(values, kind) for values, kind in zip(block, types.values(), strict=True)]
        writer.writerows(zip(*columns, strict=True))


def _cells(values: list[Any], kind: type) -> list[Any]:
    if kind not in (str, dict):
        return values
    shown = _disarmed if kind is str else _json
    return [None if value is None else shown(value) for value in values]


def _read_delimited(
    text: TextIO, types: Mapping[str, type] | None, delimiter: str
) -> Iterator[dict[str, object]]:
    rows = rows_of(csv.reader(text, delimiter=delimiter, strict=True))
    kinds = _kinds([_armed(name) for name in next(rows, [])], types)
    for row in rows:
        yield {
            name: _parsed(cell, kind) for (name, kind), cell in zip(kinds.items(), row, strict=True)
        }


def _parsed(cell: str, kind: type) -> object:
    if not cell:
        return None
    if kind is str:
        return _armed(cell)
    return json.loads(cell) if kind is dict else kind(cell)


def _disarmed(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def _armed(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def arrow_table(rows: Iterable[Mapping[str, object]], types: Mapping[str, type]) -> pyarrow.Table:
    """The rows as a table in memory, with the columns that a Parquet file would have."""
    held = list(rows)
    return _arrow([_typed([row.get(n) for row in held], kind) for n, kind in types.items()], types)


def _arrow(columns: Sequence[list[Any]], types: Mapping[str, type]) -> pyarrow.Table:
    import pyarrow as pa

    arrow = {str: pa.string(), dict: pa.string(), int: pa.int64(), float: pa.float64()}
    arrays = {}
    for values, (name, kind) in zip(columns, types.items(), strict=True):
        cells = _cells(values, kind) if kind is dict else values
        arrays[name] = pa.array(cells, arrow[kind])
    return pa.table(arrays)


def _write_parquet(
    blocks: Iterable[list[list[Any]]],
    types: Mapping[str, type],
    file: BinaryIO,
    about: Mapping[str, object],
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    nothing = _arrow([[] for _ in types], types)
    schema = nothing.schema.with_metadata({ABOUT: _json(plain(about, "about"))})
    with pq.ParquetWriter(file, schema) as writer:
        held, rows = [], 0
        for block in blocks:
            held.append(_arrow(block, types).replace_schema_metadata(schema.metadata))
            rows += len(held[-1])
            while rows >= _ROWS:
                table = pa.concat_tables(held)
                writer.write_table(table.slice(0, _ROWS))
                held, rows = [table.slice(_ROWS)], rows - _ROWS
        if rows:
            writer.write_table(pa.concat_tables(held))


def _read_parquet(path: Path, types: Mapping[str, type] | None) -> Iterator[dict[str, object]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as table:
        kinds = _kinds(table.schema_arrow.names, types)
        objects = [name for name, kind in kinds.items() if kind is dict]
        for batch in table.iter_batches(batch_size=_ROWS, use_threads=False):
            for row in batch.to_pylist():
                for name in objects:
                    row[name] = None if row[name] is None else json.loads(row[name])
                yield row
