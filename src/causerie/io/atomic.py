"""Files that appear whole or not at all, and folders that go away with their process."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from causerie.errors import CauserieError

_PLACES = "ENOSPC EDQUOT EFBIG EROFS EACCES EPERM EIO EISDIR ENOTDIR"
_PLACE = {getattr(errno, name) for name in _PLACES.split() if hasattr(errno, name)}
"""What is wrong with a place, rather than with what is written there."""


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its name once all is written; folders are made.

    What a process has left that was killed while it wrote there is removed.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(path)
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


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of `folder`, and of all in it, once it is filled.

    What a process has left that was killed meanwhile is removed, and what it had already taken
    out of its place is put back there first.
    """
    hidden, old = (
        folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("tmp", "old")
    )
    _clear_abandoned_folders(folder)
    try:
        hidden.mkdir(parents=True)
        yield hidden
        if folder.exists():
            folder.replace(old)
        hidden.replace(folder)
    finally:
        if old.exists() and not folder.exists():
            old.replace(folder)
        shutil.rmtree(hidden, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def temporary_folder(name: str) -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone; those of that name whose processes are no more go."""
    place = Path(tempfile.gettempdir())
    with suppress(OSError):
        for left in place.glob(f"{name}-[0-9]*-*"):
            process = left.name.removeprefix(f"{name}-").partition("-")[0]
            ours = os.name == "posix" and left.lstat().st_uid == os.getuid()
            if ours and process.isdecimal() and not _is_alive(int(process)):
                shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"{name}-{os.getpid()}-")


def _clear_abandoned(path: Path) -> None:
    """Remove the hidden files of processes that are no more."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-[0-9a-f]{{8}}\.tmp")
    with suppress(OSError):
        for beside in path.parent.iterdir():
            found = pattern.fullmatch(beside.name)
            if found and not _is_alive(int(found[1])):
                beside.unlink(missing_ok=True)


def _clear_abandoned_folders(folder: Path) -> None:
    """Put back or remove what processes have left that are no more."""
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.(\d+)\.(tmp|old)")
    with suppress(OSError):
        for beside in sorted(folder.parent.iterdir()):
            found = pattern.fullmatch(beside.name)
            if not found or (int(found[1]) != os.getpid() and _is_alive(int(found[1]))):
                continue
            if found[2] == "old" and not folder.exists():
                beside.replace(folder)
            else:
                shutil.rmtree(beside, ignore_errors=True)


def _is_alive(process: int) -> bool:
    """Whether there is such a process; where that cannot be told, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _cannot(path: Path, error: OSError) -> CauserieError:
    return CauserieError(f"{path} cannot be written ({error.strerror}): choose another place")
