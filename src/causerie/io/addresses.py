"""Where files lie: paths of this machine, and addresses such as `s3://bucket/logs/*.jsonl`.

An address is opened by Arrow's file systems (S3, Google Cloud, Azure, HDFS) or, where it knows none
of that name, by fsspec's.
"""

from __future__ import annotations

import glob
import io
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from causerie.errors import CauserieError
from causerie.io.atomic import atomic_write

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MEANT = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
_STORES = ("s3", "gcs", "abfs")
"""Of objects: nothing is seen there before it is whole."""


def is_address(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def expand(pattern: str) -> list[str]:
    """The files that a pattern stands for, in order; a path without `*` stands for itself.

    On this machine `?`, `[...]` and `**` have their usual meaning, too, unless a file is called
    exactly that.
    """
    if is_address(pattern):
        found = _matches(pattern) if "*" in pattern else [pattern]
    elif os.path.lexists(pattern) or not glob.has_magic(pattern):
        found = [pattern]
    else:
        found = sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))
    if not found:
        raise CauserieError(f"no file is called {pattern}: check the pattern")
    return found


def open_file(path: str) -> io.BufferedReader:
    """Open a file for reading, here or elsewhere."""
    if not is_address(path):
        return Path(path).open("rb")
    system, place = _system(path)
    return io.BufferedReader(cast("io.RawIOBase", system.open_input_file(place)))


def size_of(path: str) -> int | None:
    """Bytes of a file; None where there is none, or nobody can tell."""
    if not is_address(path):
        return os.path.getsize(path) if os.path.isfile(path) else None
    system, place = _system(path)
    size: int | None = system.get_file_info(place).size
    return size


@dataclass(frozen=True)
class Folder:
    """A folder of files that appear whole or not at all."""

    path: str

    def names(self) -> list[str]:
        """The files in it, in order; none if it does not exist."""
        from pyarrow.fs import FileSelector, FileType

        if not is_address(self.path):
            here = Path(self.path)
            return sorted(one.name for one in here.iterdir()) if here.is_dir() else []
        system, place = _system(self.path)
        found = system.get_file_info(FileSelector(place, allow_not_found=True))
        return sorted(one.base_name for one in found if one.type == FileType.File)

    def has(self, name: str) -> bool:
        if not is_address(self.path):
            return (Path(self.path) / name).is_file()
        system, place = _system(self.path)
        return bool(system.get_file_info(f"{place}/{name}").is_file)

    def open(self, name: str) -> BinaryIO:
        return open_file(self.of(name))

    def of(self, name: str) -> str:
        """The address of a file in it."""
        address, query = _parts(self.path)
        return f"{address.rstrip('/')}/{name}{query}"

    def write(self, name: str, data: bytes) -> None:
        if not is_address(self.path):
            with atomic_write(Path(self.path) / name) as file:
                file.write(data)
            return
        system, place = _system(self.path)
        system.create_dir(place, recursive=True)
        if system.type_name not in _STORES:
            with system.open_output_stream(f"{place}/.{name}.tmp") as stream:
                stream.write(data)
            system.move(f"{place}/.{name}.tmp", f"{place}/{name}")
            return
        # An object appears when it is closed, which must not happen to half of one.
        stream = system.open_output_stream(f"{place}/{name}")
        stream.write(data)
        stream.close()

    def remove(self, name: str) -> None:
        if not is_address(self.path):
            (Path(self.path) / name).unlink(missing_ok=True)
            return
        system, place = _system(self.path)
        system.delete_file(f"{place}/{name}")


def _parts(address: str) -> tuple[str, str]:
    """An address without, and from, the question mark that begins what is said to its system."""
    address, mark, query = address.partition("?") if is_address(address) else (address, "", "")
    return address, mark + query


def _matches(pattern: str) -> list[str]:
    """The addresses of the files that a pattern stands for; `*` is within a name, `**` across."""
    from pyarrow.fs import FileSelector, FileType

    address, query = _parts(pattern)
    base = address[: address.index("*")].rpartition("/")[0]
    system, place = _system(base + query)
    found = system.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
    pieces = re.split(r"(\*\*/|\*\*|\*)", address[len(base) + 1 :])
    wanted = re.compile("".join(_MEANT.get(piece, re.escape(piece)) for piece in pieces))
    under = len(place.rstrip("/")) + 1
    names = (one.path[under:] for one in found if one.type == FileType.File)
    return sorted(f"{base}/{name}{query}" for name in names if wanted.fullmatch(name))


@lru_cache(maxsize=64)
def _system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the place there."""
    import pyarrow
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        return cast("tuple[Any, str]", FileSystem.from_uri(address))
    except pyarrow.ArrowInvalid as error:
        if "Unrecognized filesystem" not in str(error):
            raise CauserieError(f"{address} is no address ({error}): check it") from error
    try:
        from fsspec.core import url_to_fs

        system, place = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise CauserieError(f"{address} is of no file system known here ({error})") from error
    return PyFileSystem(FSSpecHandler(system)), place
