"""JSON from strangers: parsed into what can be trusted, or a reason why not.

JSONL is read line by line, an array element by element: only one of them is held at a time. One
object, or objects one after the other without an array around them, are read as well.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping

from causerie.dialogue import encodable
from causerie.errors import RecordError
from causerie.io.sources import MAX_RECORD, Raw, Source, too_long

_CHUNK = 2**18
_MAX_RESCANNED = 2 * MAX_RECORD  # however broken a file is, reading it ends
_SEPARATORS = re.compile(rb"[\s,]*")
_STRUCTURE = re.compile(rb'"[^"\\\n]*"|["{}\[\]]')  # most strings are passed over whole
_IN_STRING = re.compile(rb'["\\\n]')
_JUNK_END = re.compile(rb"[,\n{}\[\]]")
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\\n]{0,200}"')
_RECORD = rb'\{\s*"(?:id|turns|messages|conversations|context|response|system)"\s*:'
_MAX_KNOWN = 8
_LONGEST_START = 256
_QUOTE, _BACKSLASH = b'"\\'
_OPENING = b"{["


def parse(text: str) -> object:
    """The value of a JSON text; raises `RecordError`."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(f"not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise RecordError("nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise RecordError(f"not valid JSON: {error}") from None
    return value


def parse_object(data: bytes) -> Mapping[str, object] | RecordError:
    """The fields of a JSON object, or why there are none."""
    try:
        value = parse(decode(data))
    except RecordError as bad:
        return bad
    if not isinstance(value, dict):
        return RecordError(f"a record must be a JSON object, not {type(value).__name__}")
    return value


def decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"not valid UTF-8 at byte {error.start + 1}") from None


def plain(value: object, name: str) -> object:
    """The value as plain JSON: a number that is not finite is null, other objects are text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return encodable(value, name)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {encodable(str(key), name): plain(item, name) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, name) for item in value]
    return encodable(str(value), name)


def read_jsonl(source: Source) -> Iterator[Raw]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in source.lines():
        if isinstance(line, RecordError):
            yield number, line
        elif not line.isspace():
            yield number, parse_object(line.rstrip(b"\r\n"))


def read_json(source: Source) -> Iterator[Raw]:
    """Read elements one by one; after a broken one, go on where the next seems to start."""
    window = _Window(source)
    in_array = False
    rescanned = 0
    known = [_RECORD]
    while window.skip_separators():
        first = window.data[:1]
        if (first == b"[" and not in_array) or (first == b"]" and in_array):
            in_array = first == b"["
            window.drop(1)
            continue
        line = window.line
        end = _element_end(window)
        found: Mapping[str, object] | RecordError
        if (end or len(window.data)) > MAX_RECORD:
            found = too_long()
        elif end is None:
            found = RecordError("not valid JSON: it never ends")
        else:
            found = parse_object(bytes(window.data[:end]))
        yield line, found
        # Elements of one array look alike: the next one starts with the same key as this one, or
        # as a sound one before it, or as records do.
        key = _FIRST_KEY.match(window.data)
        own = [re.escape(key[0])] if key is not None else []
        if not isinstance(found, RecordError):
            known += [one for one in own if one not in known and len(known) < _MAX_KNOWN]
            window.drop(end or 0)
            continue
        if window.data[0] in _OPENING and rescanned < _MAX_RESCANNED:
            rescanned += end or len(window.data)
            if window.find(re.compile(b"|".join([*known, *own])), end):
                continue
        if end is None:
            return
        window.drop(end)
    if in_array:
        yield window.line, RecordError("the array is not closed: the file may be cut short")


def _element_end(window: _Window) -> int | None:
    """Where the element at the front of the window ends; None if it does not within limits."""
    if window.data[0] not in _OPENING:
        return window.search(_JUNK_END, 1)
    open_brackets = bytearray()
    in_string = False
    at = 0
    while True:
        match = (_IN_STRING if in_string else _STRUCTURE).search(window.data, at)
        if match is None:
            at = max(at, len(window.data))
            if at > MAX_RECORD or not window.more():
                return None
            continue
        byte, at = window.data[match.start()], match.end()
        if in_string:
            if byte == _BACKSLASH:
                at += 1
            else:  # a line break ends a string that someone forgot to close
                in_string = False
        elif byte == _QUOTE:
            in_string = at == match.start() + 1
        elif byte in _OPENING:
            open_brackets.append(byte + 2)  # in ASCII, the closing bracket is two further on
        else:
            # Closing an outer bracket closes what was left open in it; a stray one is ignored.
            outer = open_brackets.rfind(byte)
            if outer >= 0:
                del open_brackets[outer:]
            if not open_brackets:
                return at


class _Window:
    """The part of the file that is held, and the line it starts on."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.data = bytearray()
        self.line = 1

    def more(self) -> bool:
        chunk = self._source.stream.read1(_CHUNK)
        self.data += chunk
        return bool(chunk)

    def drop(self, size: int) -> None:
        self.line += self.data.count(b"\n", 0, size)
        self._source.line = self.line
        del self.data[:size]

    def skip_separators(self) -> bool:
        """Go to the next byte that is none; False at the end of the file."""
        while True:
            match = _SEPARATORS.match(self.data)
            self.drop(match.end() if match else 0)
            if self.data:
                return True
            if not self.more():
                return False

    def search(self, pattern: re.Pattern[bytes], at: int) -> int:
        """Where the pattern is next, or the end of the file, or of what may be held."""
        while (match := pattern.search(self.data, at)) is None:
            at = max(at, len(self.data))
            if at > MAX_RECORD or not self.more():
                return len(self.data)
        return match.start()

    def find(self, pattern: re.Pattern[bytes], end: int | None) -> bool:
        """Go to where the pattern is next; look no further than `end` if there is one."""
        found = pattern.search(self.data, 1, len(self.data) if end is None else end)
        while found is None and end is None:
            self.drop(max(0, len(self.data) - _LONGEST_START))
            if not self.more():
                break
            found = pattern.search(self.data, 1)
        if found is not None:
            self.drop(found.start())
        return found is not None
