"""Scores kept on disk by content: what a network has scored once is not computed again.

A score depends on the metric's signature, the level and the item's content, not on the file it
came from or on its id. Adding a metric computes that metric alone; a killed run loses at most
one batch. Only metrics that run networks are kept: the others are quicker than a look-up.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Score, Scores

Item: TypeAlias = Exchange | Dialogue

VERSION = 2
"""Of the schema; a file of another version is begun anew."""
OWNER = int.from_bytes(b"caus", "big")
"""What SQLite calls an application id: says whose file it is."""
LARGEST = 2 << 30
"""Bytes of scores beyond which the oldest are forgotten."""
_SCHEMA = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL);
CREATE TABLE scores (
  metric INTEGER NOT NULL, item BLOB NOT NULL,
  scores TEXT NOT NULL,     -- JSON, per column: [value, percentile, reason, explanation]
  explained INTEGER NOT NULL,
  size INTEGER NOT NULL,    -- characters of the item
  seconds REAL NOT NULL,    -- the item's part of its batch, by size
  cut REAL,                 -- share of its batch's inputs that an engine cut; NULL: no engine
  PRIMARY KEY (metric, item)
);
"""
_LOOKED_UP_AT_ONCE = 500


@dataclass(frozen=True)
class Kept:
    """What the store has about one item."""

    scores: Scores
    size: int
    seconds: float
    cut: float | None


class ScoreStore:
    """A file of scores (SQLite); without a path in the platform's cache folder.

    Several threads and processes may use one file. `":memory:"` keeps nothing.
    """

    def __init__(self, path: str | Path | None = None, largest: int = LARGEST) -> None:
        self.path = str(path) if path is not None else str(default_path())
        self._largest = largest
        self._lock = RLock()
        with self._guarded():
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._prepare()

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

    def find(self, key: str, digests: Iterable[bytes], explain: bool) -> dict[bytes, Kept]:
        """What is known of these items under a metric's key, with explanations if wanted."""
        wanted, found = list(dict.fromkeys(digests)), {}
        with self._guarded():
            # No look-up writes: a transaction would lock others out while networks compute.
            metric = self._known(key)
            for start in range(0, len(wanted), _LOOKED_UP_AT_ONCE):
                part = wanted[start : start + _LOOKED_UP_AT_ONCE]
                marks = ",".join("?" * len(part))
                rows = self._database.execute(
                    "SELECT item, scores, size, seconds, cut FROM scores "
                    f"WHERE metric=? AND explained>=? AND item IN ({marks})",
                    (metric, explain, *part),
                )
                for item, text, size, seconds, cut in rows:
                    scores = _parsed(text, explain)
                    if scores is not None:  # what is damaged is computed again
                        found[bytes(item)] = Kept(scores, size, seconds, cut)
        return found

    def put(self, key: str, rows: Mapping[bytes, Kept], explain: bool) -> None:
        """Keep these, all or none."""
        with self._guarded(), self._database:
            self._database.execute("INSERT OR IGNORE INTO metrics (key) VALUES (?)", (key,))
            metric = self._known(key)
            self._database.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (metric, item, _written(k.scores), explain, k.size, k.seconds, k.cut)
                    for item, k in rows.items()
                ],
            )
            self._forget_oldest()

    def seconds_per_character(self, key: str) -> float | None:
        """What a metric has cost on this machine so far; None if it never ran."""
        with self._guarded():
            seconds, size = self._database.execute(
                "SELECT SUM(seconds), SUM(size) FROM scores WHERE metric=?", (self._known(key),)
            ).fetchone()
        return seconds / size if size else None

    def counts(self) -> dict[str, int]:
        """How many items are kept, by the signature of their metric."""
        with self._guarded():
            rows = self._database.execute(
                "SELECT key, COUNT(item) FROM metrics JOIN scores ON metric = id "
                "GROUP BY key ORDER BY key"
            )
            return dict(rows.fetchall())

    def clear(self) -> int:
        """Forget everything; returns how many items there were."""
        with self._guarded():
            (count,) = self._database.execute("SELECT COUNT(*) FROM scores").fetchone()
            with self._database:
                self._database.execute("DELETE FROM scores")
                self._database.execute("DELETE FROM metrics")
            self._database.execute("VACUUM")
        return int(count)

    def _prepare(self) -> None:
        """Make the tables; those of another version go."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")  # one process at a time
            (owner,) = self._database.execute("PRAGMA application_id").fetchone()
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            (tables,) = self._database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            if tables and owner != OWNER:
                raise CauserieError(
                    f"{self.path} is a database, but not one of causerie's scores: name another "
                    "file with --scores"
                )
            if version == VERSION:
                return
            for table in ("metrics", "scores"):
                self._database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _SCHEMA.split(";\n"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {OWNER}")
            self._database.execute(f"PRAGMA user_version = {VERSION}")

    def _known(self, key: str) -> int | None:
        """The number of a metric's key; None if nothing was ever kept under it."""
        row = self._database.execute("SELECT id FROM metrics WHERE key=?", (key,)).fetchone()
        return int(row[0]) if row else None

    def _forget_oldest(self) -> None:
        (pages,) = self._database.execute("PRAGMA page_count").fetchone()
        (free,) = self._database.execute("PRAGMA freelist_count").fetchone()
        (size,) = self._database.execute("PRAGMA page_size").fetchone()
        if (pages - free) * size > self._largest:
            self._database.execute(
                "DELETE FROM scores WHERE rowid IN (SELECT rowid FROM scores ORDER BY rowid "
                "LIMIT (SELECT COUNT(*) / 4 + 1 FROM scores))"
            )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time; whatever happens to the file is told in one sentence."""
        with self._lock:
            try:
                yield
            except (OSError, sqlite3.Error) as error:
                raise CauserieError(
                    f"the scores in {self.path} cannot be used ({error}): make room, wait for "
                    "the other process, or name another file with --scores"
                ) from error


def digest_of(item: Item) -> bytes:
    """Of everything a metric may look at; ids, dates and ratings are not among it."""
    dialogue = item.dialogue if isinstance(item, Exchange) else item
    turns = dialogue.turns[: item.turn + 1] if isinstance(item, Exchange) else dialogue.turns
    content = [
        type(item).__name__,
        dialogue.background,
        [(t.speaker, t.text, t.role, t.references, _numbers(t.features)) for t in turns],
    ]
    return sha256(json.dumps(content).encode()).digest()


def _numbers(features: Mapping[str, float]) -> list[tuple[str, float]]:
    """Whatever kind of numbers they are, in one order."""
    return sorted((name, float(value)) for name, value in features.items())


def default_path() -> Path:
    """Where scores are kept unless another place is named."""
    from platformdirs import user_cache_path

    # The version is in the name, so that two versions of causerie do not wipe each other's.
    return user_cache_path("causerie") / f"scores-{VERSION}.sqlite"


def _written(scores: Scores) -> str:
    return json.dumps([[s.value, s.percentile, s.reason, s.explanation] for s in scores])


def _parsed(text: str, explain: bool) -> Scores | None:
    """The scores that were written; None if they are damaged."""
    try:
        return tuple(_score(*row, explain=explain) for row in json.loads(text))
    except (ValueError, TypeError):
        return None


def _score(value: Any, percentile: Any, reason: Any, explanation: Any, *, explain: bool) -> Score:
    numbers = all(n is None or isinstance(n, (int, float)) for n in (value, percentile))
    if not numbers or (value is None) == (reason is None):
        raise ValueError
    return Score(value, percentile, explanation if explain else None, reason)
