"""Files that decide scores: opened once, hashed as they are read, used as they were hashed.

Whoever hashes a file by its name and opens it again by its name may use another file than the
one that was hashed. Here the bytes that are hashed are the bytes that are handed on.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20
_LONGEST_HEADER = 100 << 20
_SIZES = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("I8", "U8", "BOOL"), 1),
}
"""Bytes of an element, by the names that safetensors gives types."""


@dataclass(frozen=True, eq=False)
class Content:
    """What was in a file when it was read."""

    data: bytearray | mmap.mmap
    sha256: str

    def json(self) -> dict[str, Any]:
        """The object that a JSON file holds; ValueError if it holds anything else."""
        try:
            value = json.loads(self.data[:].decode("utf-8"))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError("it is not a JSON object")
        return value

    def arrays(self) -> dict[str, Placed]:
        """Where the arrays of a safetensors file are; ValueError if it is none."""
        return _arrays(self.data)


@dataclass(frozen=True)
class Placed:
    """An array within a safetensors file."""

    dtype: str
    """As safetensors calls it: F32, I64, ..."""
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def aligned(self) -> bool:
        """Whether it can be used where it lies."""
        return self.start % _SIZES[self.dtype] == 0


def read_content(file: Path, *, mapped: bool = False) -> Content:
    """Read a whole file, or map it, and hash just that; OSError if it cannot be read.

    What is mapped takes no memory, and stays the same file whatever takes its name, but follows
    whoever writes into that very file.
    """
    if not file.is_file():  # what is not there, and pipes, which would never end
        raise FileNotFoundError(f"{file} is not a file")
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if mapped and size:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            return Content(data, hashlib.sha256(data).hexdigest())
        # Memory that begins with a page: sums of products depend, in their last digits, on where
        # in memory the numbers are, and they are to be the same in every run.
        memory = mmap.mmap(-1, size) if size else bytearray()
        digest, read = hashlib.sha256(), 0
        with memoryview(memory) as view:
            while count := stream.readinto(view[read : read + _BLOCK]):
                digest.update(view[read : read + count])
                read += count
        if read < size:
            raise OSError("it became shorter while it was read")
    return Content(memory, digest.hexdigest())


def _arrays(data: bytearray | mmap.mmap) -> dict[str, Placed]:
    length = int.from_bytes(data[:8], "little")
    base = 8 + length
    if len(data) < 8 or base > len(data) or length > _LONGEST_HEADER:
        raise ValueError("it has no header")
    header = Content(bytearray(data[8:base]), "").json()
    header.pop("__metadata__", None)
    try:
        arrays = {
            name: Placed(about["dtype"], tuple(about["shape"]), base + start, base + stop)
            for name, about in header.items()
            for start, stop in (about["data_offsets"],)
        }
        for name, one in arrays.items():
            numbers = (*one.shape, one.start, one.stop)
            right = all(type(number) is int and number >= 0 for number in numbers)
            if not right or not base <= one.start <= one.stop <= len(data):
                raise ValueError(f"{name} is not within the file")
            if one.stop - one.start != one.count * _SIZES[one.dtype]:
                raise ValueError(f"{name} has another size than its shape says")
    except (KeyError, TypeError) as error:
        raise ValueError(f"its header is damaged ({type(error).__name__}: {error})") from None
    return arrays


def sha256(file: Path) -> str:
    """Return the digest of a file, read once while its size and time stay: to tell files apart."""
    status = file.stat()
    return _sha256(file.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256(file: Path, size: int, mtime_ns: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def joint_sha256(digests: Sequence[tuple[str, str]]) -> str:
    """The only file's own SHA-256, or that of the list of several: pairs of name and SHA-256."""
    if len(digests) == 1:
        return digests[0][1]
    listing = "".join(f"{digest}  {name}\n" for name, digest in digests)
    return hashlib.sha256(listing.encode()).hexdigest()
