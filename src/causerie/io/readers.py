"""The readers of all formats, how a format is told from the first bytes, and plain text.

Every reader turns a source into lines and the fields of the records that start there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping

from causerie.errors import RecordError
from causerie.io.jsontext import decode, parse, parse_object, read_json, read_jsonl
from causerie.io.records import FIELDS
from causerie.io.rows import Columns, read_csv, read_parquet, read_tsv, renamed
from causerie.io.sources import MAX_RECORD, Raw, Source, too_long

HEAD = 2**16
"""How many bytes are looked at to tell a format."""

_TIME = r"\[(?=[^\]]*\d[:./-]\d)(?P<time>[\d:./, TZAPMapm+-]{3,40})\]\s*"
PREFIX = re.compile(rf"(?:{_TIME})?(?P<speaker>[^\s:：][^:：]{{0,63}})(?::(?=\s|$)|：)")
"""A speaker at the start of a line: a name, a colon and a space; before it perhaps `[12:03]`."""

_NO_SPEAKER = (
    "line {} does not start with a speaker: write 'Speaker: text', or indent it "
    "if it goes on with the turn above"
)


def read_text(source: Source) -> Iterator[Raw]:
    """`Speaker: text` lines, a blank line between dialogues, indented lines go on.

    A time in brackets before the speaker, as in `[12:03] Ann: hi`, is the turn's.
    """
    block = _Block()
    for number, line in source.lines():
        if isinstance(line, bytes) and line.isspace():
            yield from block.finish()
            block = _Block()
        else:
            block.add(number, line)
    yield from block.finish()


class _Block:
    """The lines of one dialogue. After the first bad one, the others are passed over."""

    def __init__(self) -> None:
        self._start = 0
        self._size = 0
        self._turns: list[tuple[dict[str, str], list[str]]] = []
        self._bad: RecordError | None = None

    def add(self, number: int, line: bytes | RecordError) -> None:
        self._start = self._start or number
        if self._bad is not None:
            return
        try:
            if isinstance(line, RecordError):
                raise line
            self._size += len(line)
            if self._size > MAX_RECORD:
                raise too_long()
            self._add_text(number, decode(line))
        except RecordError as bad:
            self._bad = bad
            self._turns.clear()

    def _add_text(self, number: int, line: str) -> None:
        if line[0].isspace() and self._turns:
            self._turns[-1][1].append(line.strip())
            return
        prefix = PREFIX.match(line)
        if prefix is None:
            raise RecordError(_NO_SPEAKER.format(number))
        about = {name: value for name, value in prefix.groupdict().items() if value}
        self._turns.append((about, [line[prefix.end() :].strip()]))

    def finish(self) -> Iterator[Raw]:
        if self._bad is not None:
            yield self._start, self._bad
        elif self._turns:
            turns = [about | {"text": "\n".join(said)} for about, said in self._turns]
            yield self._start, {"turns": turns}


_TABLES: Mapping[str, Callable[[Source, Columns], Iterator[Raw]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
}
_RECORDS: Mapping[str, Callable[[Source], Iterator[Raw]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "text": read_text,
}

INPUT_FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "text")


def read_fields(source: Source, input_format: str, columns: Columns) -> Iterator[Raw]:
    """Read the fields of every record, under the names that causerie has for them."""
    if input_format in _TABLES:
        yield from _TABLES[input_format](source, columns)
        return
    for line, fields in _RECORDS[input_format](source):
        if columns and not isinstance(fields, RecordError):
            fields = renamed(fields, columns)
        yield line, fields


def detect(head: bytes, name: str, columns: Columns) -> str | None:
    """Tell the format from the first bytes of a file; None if they look like none.

    The suffix counts only where the content says nothing: a table whose columns are called
    otherwise is still a table, and its reader says which columns it has.
    """
    found = _told_by(head, columns)
    suffix = re.search(r"\.(csv|tsv)(\.gz)?$", name.lower())
    return suffix[1] if found is None and suffix and b"\0" not in head else found


def _told_by(head: bytes, columns: Columns) -> str | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = [line for line in head.split(b"\n") if line.strip()]
    if not lines:
        return "jsonl"  # an empty file: no records in any format
    if len(head) >= HEAD and len(lines) > 1:
        lines.pop()  # most likely cut
    first = lines[0].strip().decode(errors="replace")
    known = FIELDS.union(columns.values())
    has_records = any(_is_record(line, known) for line in lines)
    if first[0] == "[" and not _has_speaker(first):
        # In JSONL, a bad first line may be a list; in an array, no first line is all of it.
        return "jsonl" if has_records and _is_json(lines[0]) else "json"
    if has_records:
        return "jsonl"
    if first[0] == "{":
        # One object spread over several lines, unless it ends where the line (or head) does.
        cut = len(head) >= HEAD and len(lines) == 1
        return "jsonl" if cut or _is_json(lines[0]) else "json"
    for name, delimiter in (("csv", ","), ("tsv", "\t")):
        if _is_header(first, delimiter, columns):
            return name
    starts = [line.decode(errors="replace") for line in lines if not line[:1].isspace()]
    speakers = sum(_has_speaker(line) for line in starts)
    return "text" if speakers and speakers >= len(starts) / 2 and b"\0" not in lines[0] else None


def _has_speaker(line: str) -> bool:
    prefix = PREFIX.match(line)
    return prefix is not None and not set('{}"') & set(prefix[0])


def _is_json(line: bytes) -> bool:
    try:
        parse(decode(line))
    except RecordError:
        return False
    return True


def _is_record(line: bytes, known: frozenset[str]) -> bool:
    if not line.startswith(b"{"):
        return False
    found = parse_object(line)
    return isinstance(found, dict) and not known.isdisjoint(found)


def _is_header(line: str, delimiter: str, columns: Columns) -> bool:
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return False
    wanted = {columns.get(field, field).lower() for field in ("context", "response")}
    return wanted <= {name.strip().lower() for name in names}
