"""Where files lie: paths of this machine, and addresses such as `s3://bucket/logs/*.jsonl`.

An address is opened by Arrow's file systems (S3, Google Cloud, Azure, HDFS) or, where it knows none
of that name, by fsspec's.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from causerie.errors import CauserieError
from causerie.io.atomic import atomic_write

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MEANT = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
_STORES = ("s3", "gcs", "abfs")
"""Of objects: nothing is seen there before it is whole."""


def is_address(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def expand(pattern: str) -> list[tuple[str, int]]:
    """The files that a pattern stands for, in order, and their bytes; a name stands for itself.

    `*` is within a name, `**/` any folders; on this machine `?` and `[...]` have their usual
    meaning, too, unless a file is called exactly that.
    """
    if is_address(pattern):
        found = _matches(pattern)
    else:
        exact = os.path.lexists(pattern) or not glob.has_magic(pattern)
        names = [pattern] if exact else glob.glob(pattern, recursive=True)
        files = sorted(name for name in names if os.path.isfile(name) or exact)
        found = [(name, os.path.getsize(name) if os.path.isfile(name) else 0) for name in files]
    if not found:
        raise CauserieError(f"no file is called {pattern}: check its name")
    return found


def open_file(path: str) -> io.BufferedReader:
    """Open a file for reading, here or elsewhere."""
    if not is_address(path):
        return Path(path).open("rb")
    system, place = _system(path)
    return io.BufferedReader(cast("io.RawIOBase", system.open_input_file(place)))


@dataclass(frozen=True)
class Folder:
    """A folder of files that appear whole or not at all."""

    path: str

    def names(self) -> list[str]:
        """The files in it, in order; none if it does not exist."""
        from pyarrow.fs import FileSelector

        if not is_address(self.path):
            here = Path(self.path)
            return sorted(one.name for one in here.iterdir()) if here.is_dir() else []
        with _reached(self.path) as (system, place):
            found = system.get_file_info(FileSelector(place, allow_not_found=True))
        return sorted(one.base_name for one in found if one.is_file)

    def has(self, name: str) -> bool:
        if not is_address(self.path):
            return (Path(self.path) / name).is_file()
        with _reached(self.path) as (system, place):
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
        with _reached(self.path) as (system, place):
            system.create_dir(place, recursive=True)
            hidden = name if system.type_name in _STORES else f".{name}.tmp"
            # Closed only if all is well: it is then that an object appears.
            stream = system.open_output_stream(f"{place}/{hidden}")
            stream.write(data)
            stream.close()
            if hidden != name:
                system.move(f"{place}/{hidden}", f"{place}/{name}")

    def remove(self, name: str) -> None:
        if not is_address(self.path):
            (Path(self.path) / name).unlink(missing_ok=True)
            return
        with _reached(self.path) as (system, place):
            system.delete_file(f"{place}/{name}")


@contextmanager
def _reached(address: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address, and the place there; what fails is told in a sentence."""
    try:
        system, place = _system(address)
        yield system, place.rstrip("/")
    except OSError as error:
        why = str(error).partition("\n")[0][:300]
        raise CauserieError(
            f"{address} cannot be used ({why}): check it, and your rights"
        ) from error


def _parts(address: str) -> tuple[str, str]:
    """An address without, and from, the question mark that begins what is said to its system."""
    address, mark, query = address.partition("?") if is_address(address) else (address, "", "")
    return address, mark + query


def _matches(pattern: str) -> list[tuple[str, int]]:
    """The addresses of the files that a pattern stands for, and their bytes."""
    from pyarrow.fs import FileSelector

    address, query = _parts(pattern)
    if "*" not in address:
        with _reached(pattern) as (system, place):
            one = system.get_file_info(place)
        return [(pattern, one.size)] if one.is_file else []
    base = address[: address.index("*")].rpartition("/")[0]
    pieces = re.split(r"(\*\*/|\*\*|\*)", address[len(base) + 1 :])
    wanted = re.compile("".join(_MEANT.get(piece, re.escape(piece)) for piece in pieces))
    with _reached(base + query) as (system, place):
        found = system.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
    under = len(place) + 1
    files = ((one.path[under:], one.size) for one in found if one.is_file)
    return sorted((f"{base}/{name}{query}", size) for name, size in files if wanted.fullmatch(name))


@lru_cache(maxsize=64)
def _system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the place there."""
    import pyarrow
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    plain, query = _parts(address)
    scheme, _, rest = plain.partition("://")
    host, slash, path = rest.partition("/")
    try:
        # Names are written as they are, with spaces and all, not as in a URI.
        uri = f"{scheme}://{host}{slash}{quote(path)}{query}"
        return cast("tuple[Any, str]", FileSystem.from_uri(uri))
    except pyarrow.ArrowInvalid as error:
        if "Unrecognized filesystem" not in str(error):
            raise CauserieError(f"{address} is no address ({error}): check it") from error
    try:
        from fsspec.core import url_to_fs

        system, place = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise CauserieError(f"{address} is of no file system known here ({error})") from error
    return PyFileSystem(FSSpecHandler(system)), place
