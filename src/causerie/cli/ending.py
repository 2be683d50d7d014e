"""How a command ends: its exit status, one sentence about an error, and no leftovers.

| status | |
|---|---|
| 0 | all was done |
| 1 | done, but some records were skipped, or a metric scored nothing |
| 2 | nothing could be done: usage, missing weights, unreadable input |
| 3 | a `--fail-if` condition holds |
| 4 | the environment failed: no room, no permission, a locked file, closed or full output |

A signal that ends a command gives 128 and its number, as in a shell.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from causerie.errors import CauserieError
from causerie.progress import printable
from causerie.text.masking import mask

NOTHING_DONE = 2
ENVIRONMENT_FAILED = 4

_WRONG_NAMES = {errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG}
"""Errors caused by a wrong path, which the user has to correct."""
_SIGNALS = ("SIGTERM", "SIGHUP")


def tell(text: str) -> None:
    """Write a sentence to standard error, if it is still open."""
    with suppress(OSError):
        print(f"causerie: {printable(mask(text))}", file=sys.stderr, flush=True)


def run(app: Callable[[], None]) -> int:
    """Run a command line and return its exit status; errors are reported in one sentence."""
    status = 0
    try:
        with _stand_ins(), _signals_raised():
            try:
                app()
            except SystemExit as end:
                if isinstance(end.__context__, BrokenPipeError):  # the library exits with 1 then
                    raise end.__context__ from None
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except CauserieError as error:
        tell(str(error))
        status = status_of(error)
    except (OSError, MemoryError) as error:
        tell(_sentence(error))
        status = status_of(error)
    _drop_output()
    return status


def status_of(error: BaseException) -> int:
    """Return 4 if the environment caused the error, and otherwise 2."""
    import sqlite3

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (sqlite3.Error, TimeoutError, MemoryError)):
            return ENVIRONMENT_FAILED
        if isinstance(cause, OSError) and cause.errno not in (None, *_WRONG_NAMES):
            return ENVIRONMENT_FAILED
        cause = cause.__cause__
    return NOTHING_DONE


def _sentence(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory: close other programs, or give less input at once"
    why = error.strerror or str(error)
    if isinstance(error, BrokenPipeError):
        return "the output was closed: what was not read yet is lost"
    if error.filename is None:
        return f"the output cannot be written ({why}): make room, or redirect it"
    return f"{error.filename} cannot be used ({why}): correct that, or name another path"


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace closed standard streams, so that no other file gets their descriptors.

    The replacements cannot be read or written, so using them is an error.
    """
    before = (sys.stdin, sys.stdout, sys.stderr)
    for name, mode, flags in (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            stream = open(os.open(os.devnull, flags), mode, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
    try:
        yield
    finally:
        if None not in before:
            sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Turn signals that end the command into an exception, so that it cleans up first."""

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second signal ends it at once
        raise SystemExit(128 + number)

    before = {}
    for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _drop_output() -> None:
    """Discard what could not be written, as Python would try again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
