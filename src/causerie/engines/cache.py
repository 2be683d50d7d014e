"""What all engines share: a bounded memory of results, and a count of the inputs that were cut."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Generic, TypeAlias, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

Cuts: TypeAlias = dict[str, tuple[int, int]]
"""By engine: how many inputs were cut to the model's window, and how many there were."""

_cuts: ContextVar[Cuts | None] = ContextVar("cuts", default=None)


class Cache(Generic[Key, Value]):
    """The most recently used results, at most `capacity` of them; threads may share it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self.capacity:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


@contextmanager
def counted_cuts() -> Iterator[Cuts]:
    """Collect what engines cut while the block runs; each thread and each block has its own."""
    cuts: Cuts = {}
    token = _cuts.set(cuts)
    try:
        yield cuts
    finally:
        _cuts.reset(token)


def count_cuts(engine: str, cut: int, seen: int) -> None:
    """Report inputs to whoever is collecting; nobody may be."""
    cuts = _cuts.get()
    if cuts is not None and seen:
        before = cuts.get(engine, (0, 0))
        cuts[engine] = before[0] + cut, before[1] + seen


def add_cuts(total: Cuts, more: Cuts) -> None:
    """Add one count to another, engine by engine."""
    for engine, (cut, seen) in more.items():
        before = total.get(engine, (0, 0))
        total[engine] = before[0] + cut, before[1] + seen
