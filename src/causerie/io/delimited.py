"""Where the rows of CSV and TSV begin and end, also after one that breaks the rules.

A row may spread over several lines, so of a broken one it must be found out which lines belong to
it: they are no rows of their own, and the sound rows after them must not be lost.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from causerie.errors import RecordError
from causerie.io.jsontext import decode
from causerie.io.sources import MAX_RECORD, Source, too_long

_LINE_OVERHEAD = 128  # what Python needs to hold a line: short ones would add up unseen
_LOOK_AHEAD = 64
"""Lines after a bad row that are looked at to see whether they belong to it."""
_SOON = 8
_ROW_END = b"\r\n"


class _Room:
    """Room for long cells while somebody reads; the limit is the whole process's."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._before = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._readers:
                self._before = csv.field_size_limit()
                csv.field_size_limit(max(self._before, MAX_RECORD))
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    csv.field_size_limit(self._before)


_room = _Room()


def rows_of(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows of a `csv.reader`, however long their cells are."""
    with suppress(StopIteration):
        while True:
            yield _next_row(reader)


def _next_row(reader: Iterator[list[str]]) -> list[str]:
    with _room():
        return next(reader)


def split_rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str] | RecordError]]:
    """Rows with the line they start on; those after the first have as many columns, or are bad.

    A row that breaks the rules costs only its first line, unless the lines after it show that they
    belong to it, too: then these are no rows of their own.
    """
    lines = _Lines(source)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        lines.start_row()
        bad: RecordError | None = None
        row: list[str] = []
        try:
            row = _next_row(reader)
        except StopIteration:
            return
        except (csv.Error, RecordError) as error:
            bad = RecordError(f"not a valid row: {error}")
            lines.push_back()
        first = lines.first
        blank = bad is None and len(row) <= 1 and not "".join(row).strip()
        if bad is None and width and len(row) != width and not blank:
            bad = RecordError(f"has {len(row)} columns where the header has {width}")
        ahead = lines.peek(_LOOK_AHEAD) if bad or lines.breaks_off else []
        rest = _lines_to_row_end(ahead) if lines.breaks_off else 0
        if bad is None and _is_torn(ahead[:rest], delimiter, width):
            bad = RecordError("not a valid row: it breaks off, and its rest is on the next line")
        if bad is None:
            if not blank:
                width = width or len(row)
                lines.learn()
                yield first, lines.bad_encoding() or row
            continue
        if not rest and not lines.row_end_known(ahead):
            rest = _lines_of_it(ahead, delimiter, width, quoted=not row)
        if rest:
            bad = RecordError(f"{bad}; with it go {rest} lines after it that seem to be its own")
            lines.skip(rest)
        yield first, bad


def _lines_to_row_end(lines: Sequence[str]) -> int:
    """How many lines there are to the next that ends as rows do; 0 if that is not in sight."""
    ends = (n for n, line in enumerate(lines, 1) if line.endswith(_ROW_END.decode()))
    return next(ends, 0)


def _is_torn(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether the lines after what looks like a row are its rest, not rows of their own."""
    at = 0
    while at < len(lines):
        row = _strict_row(lines, at, delimiter)
        if row is None or row.width != width:
            return True
        at = row.end
    return False


@dataclass(frozen=True)
class _StrictRow:
    """A row that keeps to the rules to the letter: marks stand around a cell, or are doubled."""

    width: int
    quoted: bool
    blank: bool
    end: int
    """The first line after it."""


def _strict_row(lines: Sequence[str], start: int, delimiter: str) -> _StrictRow | None:
    """The row that begins with a line; None if it breaks the rules."""
    cell = re.compile(rf'(?:("(?:[^"]|"")*")|[^"{delimiter}\r\n]*)({delimiter}|\r?\n|\Z)')
    end, text, at = start + 1, lines[start], 0
    width, quoted, after = 0, False, delimiter
    while after == delimiter:
        found = cell.match(text, at)
        while found is None and end < len(lines) and text.startswith('"', at):
            text, end = text + lines[end], end + 1  # perhaps the cell goes on
            found = cell.match(text, at)
        if found is None:
            return None
        at, width, after = found.end(), width + 1, found[2]
        quoted = quoted or found[1] is not None
    return _StrictRow(width, quoted, not text.strip(), end)


def _lines_of_it(lines: Sequence[str], delimiter: str, width: int, quoted: bool) -> int:
    """How many of the lines after a bad row seem to be the rest of it.

    Where a quotation mark closes a cell that nobody has opened, it was opened before: what is in
    between is one cell. After a row whose own marks are wrong (`quoted`) any stray mark says so,
    and a wrong number of columns soon after it. A whole row may as well speak of 40" screens, if
    sound rows come before it; and after one with quoted cells, whose marks would be doubled if it
    were part of a cell, hardly anything speaks for a long cell any more.
    """
    closes = re.compile(
        rf'[^"]*(?:(?:"")+[^"]+)*(?<=[^{delimiter}"\s])(?:"")*"(?:{delimiter}|\s*\Z)'
    )
    rest = at = sound = 0
    proven = False
    while at < len(lines):
        row = _strict_row(lines, at, delimiter)
        if row is not None:
            at = row.end
            if row.width == width:
                sound, proven = sound + 1, proven or row.quoted
            elif quoted and not proven and at <= _SOON and not row.blank:
                rest = at
            continue
        line, at = lines[at], at + 1
        wrong = line.count(delimiter) + 1 != width
        closing = closes.match(line) is not None
        if proven:
            belongs = closing and wrong and at <= _SOON
        else:
            belongs = (quoted and '"' in line) or (closing and (wrong or not sound))
        if belongs:
            rest, sound, proven = at, 0, False
    return rest


class _Lines:
    """The lines of a file, as an iterator that remembers those of the current row."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._waiting: deque[tuple[int, bytes | RecordError]] = deque()
        self._row: list[tuple[int, bytes | RecordError]] = []
        self._size = 0
        self._both: bool | None = None
        """Whether rows, unlike lines within them, end with carriage return and line feed."""
        self._inside = False
        """Whether lines within rows have been seen."""

    def start_row(self) -> None:
        self._row.clear()
        self._size = 0

    @property
    def first(self) -> int:
        return self._row[0][0]

    @property
    def breaks_off(self) -> bool:
        """Whether the row ends with a line feed alone, as only lines within rows do here."""
        return bool(self._both) and not _ends_row(self._row[-1][1])

    def row_end_known(self, ahead: Sequence[str]) -> bool:
        """Whether the ends of rows can be told from those of lines within them."""
        inside = any(not line.endswith(_ROW_END.decode()) for line in ahead[:-1])
        return bool(self._both) and (self._inside or inside)

    def learn(self) -> None:
        """See from a sound row how rows end, and lines within them."""
        *within, last = [_ends_row(line) for _, line in self._row]
        self._both = last and self._both is not False and not any(within)
        self._inside = self._inside or bool(within)

    def __iter__(self) -> _Lines:
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
        del self._row[1:]

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


def _ends_row(line: bytes | RecordError) -> bool:
    return isinstance(line, bytes) and line.endswith(_ROW_END)
