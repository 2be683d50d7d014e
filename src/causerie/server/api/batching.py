"""One thread scores for all clients: their requests are joined into batches.

Works wait in a bounded queue, so that an overloaded server refuses at once. Each pass over the
networks takes a share of every work of the same kind, in whole records, so a large one delays
nobody for longer than a pass; works that nobody waits for any more are dropped between passes.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import TypeAlias

from causerie.errors import CauserieError
from causerie.metrics.base import Level
from causerie.scoring import Batch
from causerie.scoring.store import Item

WINDOW = 0.005
"""Seconds that the first request of a batch waits for others."""
PAUSE, LONGEST_PAUSE = 0.03, 0.1
"""Share of the last pass, and most seconds, to wait for clients that were just answered to ask
again: otherwise passes with few and with many items would alternate."""
PASS_SECONDS = 2.0
"""Target duration of a pass over the networks, which determines how many items it has."""
SMALLEST_PASS, FIRST_PASS, LARGEST_PASS = 16, 32, 512
"""Items per pass; smaller passes would not be faster."""
KINDS = 256
"""Number of different requests whose pass sizes are remembered."""


@dataclass(frozen=True)
class Kind:
    """What is to be computed; items of the same kind can be scored together."""

    metrics: tuple[str, ...]
    """Aliases of the metrics."""
    level: Level = "turn"
    speaker: str | None = None
    """Only at dialogue level, where it decides which turns of an item are scored."""
    explain: bool = False


class FullError(Exception):
    """The queue has no room for more."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the queue is full")
        self.seconds = max(1, min(60, math.ceil(seconds)))
        """Seconds after which to try again."""


class ClosedError(Exception):
    """The server is stopping."""


Records: TypeAlias = Sequence[Sequence[Item]]
"""The items of each record."""
Score: TypeAlias = Callable[[Kind, Sequence[Item]], Batch]


@dataclass(eq=False)
class _Work:
    kind: Kind
    records: deque[Sequence[Item]]
    left: int
    """Number of items not yet scored."""
    patient: bool
    since: float
    future: Future[list[Batch]] = field(default_factory=Future)
    parts: list[Batch] = field(default_factory=list)

    def take(self, count: int) -> list[Item]:
        """Remove and return whole records: at most `count` items, but at least one record."""
        taken: list[Item] = []
        while self.records and (not taken or len(taken) + len(self.records[0]) <= count):
            taken += self.records.popleft()
        return taken


class Batcher:
    """The queue, and the thread that processes it."""

    def __init__(
        self,
        score: Score,
        *,
        limit: int = 2048,
        window: float = WINDOW,
        told: Callable[[int, float], None] = lambda items, seconds: None,
    ) -> None:
        """Let at most `limit` items wait; `told` is called with items and seconds of every pass."""
        self._score, self.limit, self._window, self._told = score, limit, window, told
        self._works: deque[_Work] = deque()
        self._changed = Condition()
        self._closing = False
        self._sizes: dict[Kind, float] = {}
        self._seconds_per_item = 0.05
        self._resume_at = 0.0
        """Time at which clients that were just answered have had time to ask again."""
        self._thread = Thread(target=self._run, name="scoring", daemon=True)

    @property
    def waiting(self) -> int:
        """Number of waiting items."""
        with self._changed:
            return self._waiting()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._closing

    def start(self) -> None:
        self._thread.start()

    def submit(self, kind: Kind, records: Records, *, patient: bool = False) -> Future[list[Batch]]:
        """Queue items for scoring; cancel the future if nobody waits for it any more.

        Raise `FullError` if too many are waiting. A patient work does not count towards the limit,
        is scored by itself (so that its batches report its own cuts), and is cancelled when the
        server stops.
        """
        size = sum(map(len, records))
        with self._changed:
            if self._closing:
                raise ClosedError
            waiting = self._waiting()
            if not patient and waiting and waiting + size > self.limit:
                raise FullError(self._seconds_per_item * waiting)
            work = _Work(kind, deque(r for r in records if r), size, patient, time.monotonic())
            if size:
                self._works.append(work)
                self._changed.notify_all()
            else:
                work.future.set_result([])
        return work.future

    def close(self) -> None:
        """Accept nothing more, cancel patient works, and finish the others."""
        with self._changed:
            self._closing = True
            for work in self._works:
                if work.patient:
                    work.future.cancel()
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while picked := self._pick():
            kind, pieces = picked
            self._pass(kind, pieces)

    def _pick(self) -> tuple[Kind, list[tuple[_Work, list[Item]]]] | None:
        """Return the kind and the items of the next pass, or None when the queue has closed."""
        with self._changed:
            while True:
                self._drop()
                if not self._works:
                    if self._closing:
                        return None
                    self._changed.wait()
                    continue
                kind = self._works[0].kind
                size = int(self._sizes.get(kind, FIRST_PASS))
                start = self._works[0].since + self._window
                if not self._works[0].patient:
                    start = max(start, self._resume_at)
                late = start - time.monotonic()
                if late <= 0 or self._closing or self._waiting() >= size:
                    return kind, self._share(kind, size)
                self._changed.wait(late)

    def _share(self, kind: Kind, size: int) -> list[tuple[_Work, list[Item]]]:
        """Take a fair share of every work of this kind; unfinished works move to the end."""
        first = self._works[0]
        works = [w for w in self._works if w.kind == kind and not w.patient]
        if first.patient:
            works = [first]
        pieces: dict[_Work, list[Item]] = {work: [] for work in works}
        room = size
        # The oldest always gets a share; small works leave the rest of theirs to the others.
        order = [first, *sorted((w for w in works if w is not first), key=lambda w: w.left)]
        for place, work in enumerate(order):
            fair = max(1, room // (len(works) - place))
            pieces[work] = work.take(fair)
            room -= len(pieces[work])
            if room <= 0:
                break
        for work in works:
            if pieces[work]:
                self._works.remove(work)
                if work.records:
                    self._works.append(work)
        return [(work, taken) for work, taken in pieces.items() if taken]

    def _pass(self, kind: Kind, pieces: list[tuple[_Work, list[Item]]]) -> None:
        items = [item for _, taken in pieces for item in taken]
        try:
            batch = self._score(kind, items)
        except Exception as error:
            if len(pieces) > 1:  # one of them is to blame: score each on its own
                for piece in pieces:
                    self._pass(kind, [piece])
            else:
                self._fail(pieces[0][0], error)
            return
        seconds = sum(batch.seconds.values())  # without loading the networks
        self._adapt(kind, len(items), seconds)
        self._resume_at = time.monotonic() + min(LONGEST_PAUSE, PAUSE * seconds)
        self._told(len(items), seconds)
        place = 0
        for work, taken in pieces:
            whole = len(pieces) == 1
            work.parts.append(batch if whole else _part(batch, place, place + len(taken)))
            place += len(taken)
            work.left -= len(taken)
            if not work.left:
                with suppress(InvalidStateError):  # nobody waits for it any more
                    work.future.set_result(work.parts)

    def _fail(self, work: _Work, error: Exception) -> None:
        with self._changed, suppress(ValueError):
            self._works.remove(work)
        with suppress(InvalidStateError):
            work.future.set_exception(error)

    def _adapt(self, kind: Kind, items: int, seconds: float) -> None:
        """Update the size of a pass and the time per item from the last pass."""
        self._seconds_per_item += 0.2 * (seconds / items - self._seconds_per_item)
        if len(self._sizes) >= KINDS:
            self._sizes.clear()
        size = self._sizes.get(kind, FIRST_PASS)
        if seconds > 2 * PASS_SECONDS:
            size /= 2
        elif seconds < PASS_SECONDS and items >= size / 2:
            size *= 2
        self._sizes[kind] = max(SMALLEST_PASS, min(LARGEST_PASS, size))

    def _drop(self) -> None:
        """Drop the works that nobody waits for any more."""
        if any(work.future.cancelled() for work in self._works):
            self._works = deque(work for work in self._works if not work.future.cancelled())

    def _waiting(self) -> int:
        works: Iterable[_Work] = (w for w in self._works if not w.patient)
        return sum(work.left for work in works if not work.future.cancelled())


def _part(batch: Batch, start: int, end: int) -> Batch:
    scores = {column: found[start:end] for column, found in batch.scores.items()}
    return Batch(batch.plan, batch.items[start:end], scores)


def failure_of(error: BaseException) -> CauserieError:
    """Return the error for a client whose items could not be scored."""
    if isinstance(error, CauserieError):
        return error
    return CauserieError(f"a metric has failed on these items ({type(error).__name__}): omit it")
