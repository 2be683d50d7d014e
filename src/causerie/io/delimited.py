"""CSV and TSV with a header line that names the columns."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from causerie.errors import CauserieError
from causerie.io.jsontext import decode
from causerie.io.records import FIELDS
from causerie.io.rejected import MAX_RECORD, Raw, RecordError, too_long
from causerie.io.sources import Source

_LINE_OVERHEAD = 128  # what Python needs to hold a line: short ones would add up unseen


def read_csv(source: Source) -> Iterator[Raw]:
    return _read(source, ",")


def read_tsv(source: Source) -> Iterator[Raw]:
    return _read(source, "\t")


def columns(names: Sequence[str]) -> list[str]:
    """The columns of a table as names of fields, which are recognised in any case."""
    folded = [name.strip().lower() for name in names]
    found = [low if low in FIELDS else name for name, low in zip(names, folded, strict=True)]
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise CauserieError(f"there are two columns named {twice!r}: rename one")
    return found


def _read(source: Source, delimiter: str) -> Iterator[Raw]:
    # The limit belongs to the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD))
    rows = _rows(source, delimiter)
    _, header = next(rows, (0, None))
    if header is None:
        return
    if isinstance(header, RecordError):
        raise CauserieError(f"the header line cannot be read ({header}): correct it")
    names = columns(header)
    if not {"context", "response"} <= set(names):
        raise CauserieError(
            'the header line must name the columns "context" and "response", '
            f"but it is {', '.join(names)[:200]}: rename them, or use --input-format"
        )
    for line, row in rows:
        if isinstance(row, RecordError):
            yield line, row
        elif len(row) != len(names):
            yield line, RecordError(f"has {len(row)} columns where the header has {len(names)}")
        else:
            yield line, _fields(names, row)


def _fields(names: list[str], row: list[str]) -> dict[str, object]:
    """The cells that are filled; a rating is a number, which CSV cannot say."""
    fields: dict[str, object] = {
        name: cell
        for name, cell in zip(names, row, strict=True)
        if cell or name in ("context", "response")
    }
    with suppress(ValueError):  # no such column, or no number in it
        fields["rating"] = float(row[names.index("rating")])
    return fields


def _rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str] | RecordError]]:
    """Rows with the line they start on. One that breaks the rules costs only its first line."""
    pulled = _PulledLines(source)
    reader = csv.reader(pulled, delimiter=delimiter, strict=True)
    while True:
        pulled.start_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except (csv.Error, RecordError) as error:
            pulled.push_back()
            yield pulled.first, RecordError(f"not a valid row: {error}")
            continue
        if len(row) > 1 or "".join(row).strip():  # not a blank line
            yield pulled.first, pulled.bad_encoding() or row


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
