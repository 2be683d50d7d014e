"""Tell the format of a file from its first bytes."""

from __future__ import annotations

import csv

from causerie.io.jsontext import decode, parse, parse_object
from causerie.io.linewise import PREFIX
from causerie.io.records import FIELDS
from causerie.io.rejected import RecordError

HEAD = 2**16
"""How many bytes are looked at."""


def detect(head: bytes) -> str | None:
    """The name of the format; None if the bytes look like none of them."""
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = [line for line in head.split(b"\n") if line.strip()]
    if not lines:
        return "jsonl"  # an empty file: no records in any format
    if len(head) >= HEAD and len(lines) > 1:
        lines.pop()  # most likely cut
    first = lines[0].strip().decode(errors="replace")
    has_records = any(map(_is_record, lines))
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
        if _is_header(first, delimiter):
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


def _is_record(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    found = parse_object(line)
    return isinstance(found, dict) and not FIELDS.isdisjoint(found)


def _is_header(line: str, delimiter: str) -> bool:
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return False
    return {"context", "response"} <= {name.strip().lower() for name in names}
