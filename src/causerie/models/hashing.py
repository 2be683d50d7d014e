"""SHA-256 of files, each computed once per process while the file does not change."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path


def sha256(file: Path) -> str:
    status = file.stat()
    return _sha256(file.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256(file: Path, size: int, mtime_ns: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sha256_of_all(files: Sequence[Path]) -> str:
    """The file's own SHA-256 if there is one file, that of the list of hashes if several."""
    if len(files) == 1:
        return sha256(files[0])
    listing = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()
