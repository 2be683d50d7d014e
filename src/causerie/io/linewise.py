"""Formats that are read line by line: JSONL and plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from causerie.io.jsontext import decode, parse_object
from causerie.io.rejected import MAX_RECORD, Raw, RecordError, too_long
from causerie.io.sources import Source

_TIME = r"\[(?=[^\]]*\d[:./-]\d)(?P<time>[\d:./, TZAPMapm+-]{3,40})\]\s*"
PREFIX = re.compile(rf"(?:{_TIME})?(?P<speaker>[^\s:：][^:：]{{0,63}})(?::(?=\s|$)|：)")
"""A speaker at the start of a line: a name, a colon and a space; before it perhaps `[12:03]`."""

_NO_SPEAKER = (
    "line {} does not start with a speaker: write 'Speaker: text', or indent it "
    "if it goes on with the turn above"
)


def read_jsonl(source: Source) -> Iterator[Raw]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in source.lines():
        if isinstance(line, RecordError):
            yield number, line
        elif not line.isspace():
            yield number, parse_object(line.rstrip(b"\r\n"))


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
