"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from causerie.errors import CauserieError

_PLACE = (errno.ENOSPC, errno.EISDIR, errno.ENOTDIR)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its name once all is written; folders are made."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = hidden.open("xb")
    except OSError as error:
        raise _cannot(path, error) from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException as error:
        hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _PLACE:
            raise _cannot(path, error) from error
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file; a lone surrogate in a name must not cost the user the whole file."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", errors="replace"))


def _cannot(path: Path, error: OSError) -> CauserieError:
    return CauserieError(f"{path} cannot be written ({error.strerror}): choose another place")
