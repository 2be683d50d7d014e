"""Where bytes come from, a file or standard input, compressed or not, and what is bad in them."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TypeAlias, cast

from causerie.errors import CauserieError, RecordError
from causerie.io.addresses import open_file

Raw: TypeAlias = tuple[int, "Mapping[str, object] | RecordError"]
"""What every format is reduced to: the line and the fields of a record."""

MAX_RECORD = 64 * 2**20
"""Bytes of the longest record that is read."""

READ_ERRORS = (OSError, EOFError, zlib.error)
"""What reading a damaged or vanished file raises."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BUFFER = 2**18


@dataclass(frozen=True, slots=True)
class Rejected:
    """A bad record: reported and counted, never an exception.

    The reason counts turns and messages from 0, as the `turn` column of the output does.
    """

    source: str
    """The file name as given; "-" for standard input."""
    line: int
    """1-based line where the record starts; in Parquet, its row."""
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}"


def too_long(limit: int = MAX_RECORD) -> RecordError:
    size = f"{limit // 2**20} MB" if limit >= 2**20 else f"{limit // 2**10} KB"
    return RecordError(f"longer than {size}: split it")


def numbered_lines(
    stream: BinaryIO | io.BufferedIOBase, limit: int = MAX_RECORD
) -> Iterator[tuple[int, bytes | RecordError]]:
    """The lines of a stream as they come; one of more bytes than the limit is never held whole."""
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        if len(line) <= limit:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_BUFFER)
        yield number, too_long(limit)


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Peekable(io.RawIOBase):
    """A stream that can be looked into before it is read, seekable or not."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._seen = b""
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, or as many as can be read."""
        try:
            while len(self._seen) < size and self._error is None:
                data = self._stream.read1(size - len(self._seen))
                if not data:
                    break
                self._seen += data
        except READ_ERRORS as error:
            if not self._seen:
                raise
            self._error = error  # met again once what came before it has been read
        return self._seen[:size]

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._seen and self._error is not None:
            raise self._error
        data = self._seen[: len(buffer)] or self._stream.read1(len(buffer))
        self._seen = self._seen[len(data) :]
        buffer[: len(data)] = data
        return len(data)


class Source:
    """The bytes of one input, decompressed and without a byte order mark."""

    def __init__(
        self,
        stream: _Peekable,
        file: io.BufferedReader | None,
        raw: io.BufferedReader | None,
        stack: ExitStack,
    ) -> None:
        """`file` holds just these bytes, `raw` may hold them compressed; None: there is none."""
        self._peekable = stream
        self._file = file
        self._raw = raw
        self._stack = stack
        self.stream = io.BufferedReader(stream, _BUFFER)
        self.line = 0
        """Lines (or rows) read so far."""

    def position(self) -> int:
        """How many bytes of the file, as it lies on disk, have been read."""
        return self._raw.tell() if self._raw and self._raw.seekable() else 0

    def head(self, size: int) -> bytes:
        """The first bytes; to be asked for before anything is read."""
        return self._peekable.peek(size)

    def lines(self) -> Iterator[tuple[int, bytes | RecordError]]:
        """Numbered lines; one that is too long is never held whole."""
        for number, line in numbered_lines(self.stream):
            self.line = number
            yield number, line

    def seekable(self) -> BinaryIO:
        """The same bytes as a file that can be read in any order."""
        if self._file is not None and self._file.seekable():
            self._file.seek(0)
            return self._file
        spool = tempfile.TemporaryFile()  # noqa: SIM115  (the stack closes it)
        self._stack.enter_context(spool)
        shutil.copyfileobj(self.stream, spool)
        spool.seek(0)
        return spool


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a file, or standard input for "-"."""
    with ExitStack() as stack:
        try:
            raw = file = None if path == "-" else stack.enter_context(open_file(path))
            stream = _Peekable(file or cast("io.BufferedReader", sys.stdin.buffer))
            if stream.peek(2) == _GZIP:
                file = None
                stream = _Peekable(gzip.GzipFile(fileobj=io.BufferedReader(stream)))
            head = stream.peek(64)
        except FileNotFoundError as error:
            raise CauserieError(f"{path} does not exist: check its name") from error
        except IsADirectoryError as error:
            raise CauserieError(f"{path} is a folder: give the files in it") from error
        except (*READ_ERRORS, ValueError) as error:  # ValueError: a NUL in the name
            name = "standard input" if path == "-" else path
            why = getattr(error, "strerror", None) or error
            raise CauserieError(f"{name} cannot be read ({why}): check it") from error
        if head.startswith(_UTF16) and b"\0" in head:
            raise CauserieError(f"{path} is UTF-16 text: save it as UTF-8")
        if head.startswith(_BOM):
            stream.read(len(_BOM))
        yield Source(stream, file, raw, stack)
