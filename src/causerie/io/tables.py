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
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from causerie.errors import CauserieError
from causerie.io.atomic import atomic_write
from causerie.io.delimited import rows_of
from causerie.io.jsontext import plain

if TYPE_CHECKING:
    import pyarrow

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
    suffix, zipped = _format(path)
    kinds = _kinds(columns, types)
    values = ([_value(row.get(name), kind) for name, kind in kinds.items()] for row in rows)
    with atomic_write(path) as file:
        if suffix == ".parquet":
            _write_parquet(values, kinds, file, about or {})
            return
        # No name and time in the gzip header: the same rows give the same bytes.
        outer = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if zipped else file
        text = io.TextIOWrapper(outer, encoding="utf-8", newline="")
        if suffix == ".jsonl":
            for row in values:
                text.write(_json(dict(zip(kinds, row, strict=True))) + "\n")
        else:
            _write_delimited(values, kinds, text, _DELIMITERS[suffix])
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
    rows: Iterable[Mapping[str, object]], types: Mapping[str, type], about: Mapping[str, object]
) -> bytes:
    """What `write_table` would write as .parquet."""
    file = io.BytesIO()
    values = ([_value(row.get(name), kind) for name, kind in types.items()] for row in rows)
    _write_parquet(values, types, file, about)
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


def _value(value: Any, kind: type) -> Any:
    """The value as its column's type: what a row holds is only ever one of four types."""
    if value is None:
        return None
    if kind is dict:
        return plain(value, "value")
    if kind is float:
        number = float(value)
        return number if math.isfinite(number) else None
    return kind(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _row(line: str) -> dict[str, object]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("a line is not an object")
    return row


def _write_delimited(
    rows: Iterable[list[Any]], kinds: Mapping[str, type], text: TextIO, delimiter: str
) -> None:
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow([_disarmed(name) for name in kinds])
    for row in rows:
        writer.writerow([_cell(v, kind) for v, kind in zip(row, kinds.values(), strict=True)])


def _cell(value: Any, kind: type) -> Any:
    if value is None:
        return None
    if kind is dict:
        return _json(value)
    return _disarmed(value) if kind is str else value


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
    values = [[_value(row.get(name), kind) for name, kind in types.items()] for row in rows]
    return _arrow(values, types)


def _arrow(rows: Sequence[Sequence[Any]], kinds: Mapping[str, type]) -> pyarrow.Table:
    import pyarrow as pa

    arrow = {str: pa.string(), dict: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = {}
    for index, (name, kind) in enumerate(kinds.items()):
        values = [row[index] for row in rows]
        if kind is dict:
            values = [None if value is None else _json(value) for value in values]
        columns[name] = pa.array(values, arrow[kind])
    return pa.table(columns)


def _write_parquet(
    rows: Iterator[list[Any]],
    kinds: Mapping[str, type],
    file: BinaryIO,
    about: Mapping[str, object],
) -> None:
    import pyarrow.parquet as pq

    schema = _arrow([], kinds).schema.with_metadata({ABOUT: _json(plain(about, "about"))})
    with pq.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS)):
            writer.write_table(_arrow(batch, kinds).replace_schema_metadata(schema.metadata))


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
