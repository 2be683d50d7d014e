"""What a person sees while something takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def announced(message: str, after: float = 2.0) -> Iterator[None]:
    """Say on standard error what is going on if it takes longer than `after` seconds.

    One plain line: it reads well in a log and above a progress bar alike.
    """
    stream = sys.stderr
    timer = threading.Timer(
        after, lambda: print(f"causerie: {message} ...", file=stream, flush=True)
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
