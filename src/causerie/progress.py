"""Progress of whatever takes time: one event, told to whoever watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that takes time has got further, or has something to say."""

    task: str
    """What is going on, in words: "training density"."""
    done: float = 0.0
    total: float | None = None
    """None if it is unknown."""
    unit: str = ""
    """What is counted: "steps", "responses", "bytes", "seconds"."""
    detail: str = ""
    """Shown beside the bar, such as "loss 0.31"."""
    note: str | None = None
    """A line that people should be able to keep, such as a skipped record."""


Watch: TypeAlias = Callable[[Progress], None]


def ignore(progress: Progress) -> None:
    """Watch nothing."""


def counting(watch: Watch, task: str, unit: str = "") -> Callable[[float, float], None]:
    """Return what tells `watch` about one task, given how much is done and of how much."""
    return lambda done, total: watch(Progress(task, done, total, unit))


def printable(text: str) -> str:
    """One line that may be written to a terminal: nothing in it can steer or reorder what is shown.

    That is true of what Python calls printable; anything else, line ends included, is a mark.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)


def print_note(progress: Progress) -> None:
    """Print the note, if there is one, as a plain line on standard error.

    It reads well in a log and above a progress bar alike.
    """
    if progress.note is not None:
        print(f"causerie: {printable(progress.note)}", file=sys.stderr, flush=True)


@contextmanager
def announced(task: str, watch: Watch = print_note, after: float = 2.0) -> Iterator[None]:
    """Tell `watch` what is going on if it takes longer than `after` seconds."""
    timer = threading.Timer(after, watch, [Progress(task, note=f"{task} ...")])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
