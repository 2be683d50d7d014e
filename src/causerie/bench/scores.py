"""Scores kept on disk by content: what was scored once is never computed again.

A score depends on the metric's signature, the level and the item's content, not on the set it
came from or on its id. Adding a metric computes that metric alone; a killed run loses at most
one chunk.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from causerie._version import __version__
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError
from causerie.metrics.base import Level, Metric, Scores

Item: TypeAlias = Exchange | Dialogue
Watch: TypeAlias = Callable[[int, int], None]
"""Told how many items are done, and of how many."""

_FIRST_CHUNK, _LARGEST_CHUNK, _CHUNK_SECONDS = 32, 1024, 10.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS scores (
  metric INTEGER NOT NULL, item BLOB NOT NULL,
  scores TEXT NOT NULL,        -- JSON, one per column: a number, or why there is none
  size INTEGER NOT NULL,       -- characters of the item
  seconds REAL NOT NULL,       -- the item's part of its chunk, by size
  truncated REAL,              -- share of its chunk's inputs that an engine cut
  PRIMARY KEY (metric, item)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Stored:
    """What the store has about one item."""

    scores: tuple[float | str, ...]
    """One per column: the number, or the reason why there is none."""
    size: int
    seconds: float
    truncated: float | None


@dataclass(frozen=True)
class Scored:
    """The scores of one metric for a list of items."""

    columns: tuple[str, ...]
    values: NDArray[np.float64]
    """Columns x items, NaN where unscored, on the metric's own scale."""
    reasons: Mapping[str, Mapping[str, int]]
    """By column, why items are unscored, and how many each time."""
    seconds_per_1000: float | None
    """Seconds per 1,000 turns when they were computed; None without items."""
    truncated: float | None
    """Share of the inputs that an engine cut to its window; None if it uses no engine."""


class ScoreStore:
    """A file of scores (SQLite); without a path in the platform's cache folder.

    Several processes may use one file. `":memory:"` keeps nothing.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = str(path) if path is not None else str(default_path())
        try:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=60)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise CauserieError(
                f"the scores in {self.path} cannot be used ({error}): "
                "delete that file or name another one"
            ) from error

    def __enter__(self) -> ScoreStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def find(self, key: str, digests: Iterable[bytes]) -> dict[bytes, Stored]:
        """What is known of these items under a metric's key."""
        metric, found = self._metric(key), {}
        for digest in digests:
            row = self._database.execute(
                "SELECT scores, size, seconds, truncated FROM scores WHERE metric=? AND item=?",
                (metric, digest),
            ).fetchone()
            if row:
                found[digest] = Stored(tuple(json.loads(row[0])), *row[1:])
        return found

    def put(self, key: str, rows: Mapping[bytes, Stored]) -> None:
        """Keep these, all or none."""
        metric = self._metric(key)
        with self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (metric, digest, json.dumps(row.scores), row.size, row.seconds, row.truncated)
                    for digest, row in rows.items()
                ],
            )

    def seconds_per_character(self, key: str) -> float | None:
        """What a metric has cost on this machine so far; None if it never ran."""
        seconds, size = self._database.execute(
            "SELECT SUM(seconds), SUM(size) FROM scores WHERE metric=?", (self._metric(key),)
        ).fetchone()
        return seconds / size if size else None

    def _metric(self, key: str) -> int:
        with self._database:
            self._database.execute("INSERT OR IGNORE INTO metrics (key) VALUES (?)", (key,))
        row = self._database.execute("SELECT id FROM metrics WHERE key=?", (key,)).fetchone()
        return int(row[0])


def score_items(
    metric: Metric,
    items: Sequence[Item],
    store: ScoreStore,
    watch: Watch = lambda done, total: None,
) -> Scored:
    """Scores of exchanges, or of dialogues, in order; computes only what the store lacks.

    Each chunk of about ten seconds is committed as it is done. Of a dialogue, the system's
    turns are scored where its roles are known, because the system is what people judged.
    """
    level = level_of(items)
    key, digests = store_key(metric, level), [digest_of(item) for item in items]
    known = store.find(key, set(digests))
    missing = {d: item for d, item in zip(digests, items, strict=True) if d not in known}
    done, total = len(items) - len(missing), len(items)
    watch(done, total)
    queue, size = iter(missing.items()), _FIRST_CHUNK
    while chunk := dict(islice(queue, size)):
        rows, seconds = _score_chunk(metric, chunk, level)
        store.put(key, rows)
        known.update(rows)
        done += len(chunk)
        watch(done, total)
        if seconds > 2 * _CHUNK_SECONDS:
            size = max(1, size // 2)
        elif seconds < _CHUNK_SECONDS / 2:
            size = min(2 * size, _LARGEST_CHUNK)
    return _scored(metric.columns(level), items, [known[digest] for digest in digests])


def expected_seconds(metric: Metric, items: Sequence[Item], store: ScoreStore) -> float | None:
    """How long the items that the store lacks will take; None if the metric never ran here."""
    key = store_key(metric, level_of(items))
    by_digest = {digest_of(item): item for item in items}
    for digest in store.find(key, by_digest):
        del by_digest[digest]
    if not by_digest:
        return 0.0
    rate = store.seconds_per_character(key)
    return None if rate is None else rate * sum(map(_size, by_digest.values()))


def level_of(items: Sequence[Item]) -> Level:
    return "dialogue" if items and isinstance(items[0], Dialogue) else "turn"


def store_key(metric: Metric, level: Level) -> str:
    """What decides a metric's scores besides the item."""
    return f"causerie|{__version__} {metric.signature} {level}"


def digest_of(item: Item) -> bytes:
    """Of everything a metric may look at; ids, dates and ratings are not among it."""
    dialogue = item.dialogue if isinstance(item, Exchange) else item
    turns = dialogue.turns[: item.turn + 1] if isinstance(item, Exchange) else dialogue.turns
    content = [
        type(item).__name__,
        dialogue.background,
        [(t.speaker, t.text, t.role, t.references, sorted(t.features.items())) for t in turns],
    ]
    return sha256(json.dumps(content).encode()).digest()


def default_path() -> Path:
    """Where scores are kept unless another place is named."""
    from platformdirs import user_cache_path

    # The number is the schema's: another schema is another file.
    return user_cache_path("causerie") / "scores-1.sqlite"


def _score_chunk(
    metric: Metric, chunk: Mapping[bytes, Item], level: Level
) -> tuple[dict[bytes, Stored], float]:
    items = list(chunk.values())
    before, start = _truncation(metric), time.perf_counter()
    scores = _score(metric, items, level)
    seconds = time.perf_counter() - start
    cut, inputs = (now - then for now, then in zip(_truncation(metric), before, strict=True))
    total = sum(map(_size, items))
    rows = {
        digest: Stored(
            tuple(s.value if s.value is not None else s.reason or "unscored" for s in row),
            _size(item),
            seconds * _size(item) / total,
            cut / inputs if inputs else None,
        )
        for (digest, item), row in zip(chunk.items(), scores, strict=True)
    }
    return rows, seconds


def _score(metric: Metric, items: Sequence[Item], level: Level) -> list[Scores]:
    metric.explain = False
    if level == "turn":
        return metric.score_exchanges([i for i in items if isinstance(i, Exchange)])
    dialogues = [i for i in items if isinstance(i, Dialogue)]
    with_roles = [any(turn.role == "system" for turn in d.turns) for d in dialogues]
    parts = {
        known: iter(
            metric.score_dialogues(
                [d for d, has in zip(dialogues, with_roles, strict=True) if has == known],
                "system" if known else None,
            )
        )
        for known in set(with_roles)
    }
    return [next(parts[known]) for known in with_roles]


def _truncation(metric: Metric) -> tuple[int, int]:
    """Inputs cut and inputs seen, by all engines together."""
    counts = metric.engines.truncation().values()
    return sum(cut for cut, _ in counts), sum(seen for _, seen in counts)


def _turns(item: Item) -> Sequence[Turn]:
    return item.turns if isinstance(item, Dialogue) else (*item.context, item.response)


def _size(item: Item) -> int:
    return 1 + sum(len(turn.text) for turn in _turns(item))


def _scored(columns: tuple[str, ...], items: Sequence[Item], rows: Sequence[Stored]) -> Scored:
    values = np.full((len(columns), len(rows)), np.nan)
    reasons: list[Counter[str]] = [Counter() for _ in columns]
    for place, row in enumerate(rows):
        for column, score in enumerate(row.scores):
            if isinstance(score, str):
                reasons[column][score] += 1
            else:
                values[column, place] = score
    turns = sum(max(1, len(i.turns) - 1) if isinstance(i, Dialogue) else 1 for i in items)
    cut = [row.truncated for row in rows if row.truncated is not None]
    return Scored(
        columns,
        values,
        {name: dict(why) for name, why in zip(columns, reasons, strict=True)},
        1000 * sum(row.seconds for row in rows) / turns if turns else None,
        sum(cut) / len(cut) if cut else None,
    )
