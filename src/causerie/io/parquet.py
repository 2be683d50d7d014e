"""Parquet tables, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from causerie.errors import CauserieError
from causerie.io.delimited import columns
from causerie.io.rejected import MAX_RECORD, Raw, RecordError, too_long
from causerie.io.sources import Source

_ROWS = 128


def read_parquet(source: Source) -> Iterator[Raw]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
    try:
        # Its own threads would read ahead, and now and then abort the process at its end.
        table = pq.ParquetFile(source.seekable(), page_checksum_verification=True, pre_buffer=False)
        found = table.schema_arrow.names
    except damaged as error:
        raise CauserieError(f"not a readable Parquet file ({_short(error)})") from error
    names = columns(found)
    if not (
        {"context", "response"} <= set(names) or {"turns", "messages", "conversations"} & set(names)
    ):
        raise CauserieError(
            'there must be the columns "context" and "response" (or "turns", "messages" or '
            f'"conversations"), but there are {", ".join(names)[:200]}: rename them'
        )
    batches = table.iter_batches(batch_size=_ROWS, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except damaged as error:
            yield source.line + 1, RecordError(f"the rest cannot be read: {_short(error)}")
            return
        if batch is None:
            return
        for row in _rows(batch, damaged):
            source.line += 1
            yield (
                source.line,
                row if isinstance(row, RecordError) else dict(zip(names, row, strict=True)),
            )


def _rows(batch: Any, damaged: tuple[type[Exception], ...]) -> Iterator[list[object] | RecordError]:
    """The values of each row; one by one where some value cannot be read or is huge."""
    if batch.nbytes <= MAX_RECORD:
        try:
            yield from zip(*[column.to_pylist() for column in batch.columns], strict=True)
            return
        except damaged:
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
        except damaged as error:
            yield RecordError(f"cannot be read: {_short(error)}")


def _short(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
