"""Scores kept on disk by content: what a network has scored once is not computed again.

A score depends on the metric's signature, the level and the item's content, not on the file it
came from or on its id. Adding a metric computes that metric alone; a killed run loses at most
one batch. Only metrics that run networks are kept: the others are quicker than a look-up.
"""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from math import isfinite
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError, CauserieWarning
from causerie.metrics.base import Score, Scores

Item: TypeAlias = Exchange | Dialogue
Result = TypeVar("Result")

VERSION = 3
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
  digest BLOB NOT NULL,     -- of the metric's key and all of the row
  PRIMARY KEY (metric, item)
);
"""
WAIT = 60.0
"""Seconds to wait for another process that has the file locked."""
_LOOKED_UP_AT_ONCE = 500
_HEADER = b"SQLite format 3\0"
_OWNER_AT = 68
"""Where a file of SQLite has its application id."""


@dataclass(frozen=True)
class Kept:
    """What the store has about one item."""

    scores: Scores
    size: int
    seconds: float
    cut: float | None


class ScoreStore:
    """A file of scores (SQLite); without a path in the platform's cache folder.

    Several threads and processes may use one file. `":memory:"` keeps nothing. A file that turns
    out to be damaged is set aside, with a warning, and begun anew.
    """

    def __init__(self, path: str | Path | None = None, largest: int = LARGEST) -> None:
        self.path = str(path) if path is not None else str(default_path())
        self._largest = largest
        self._lock = RLock()
        self._opened: tuple[int, int] | None = None
        """Which file is open, whatever is at its path by now."""
        self._process: int | None = None
        """Which process opened it: a fork must not use the connection of its parent."""
        self._inherited: list[sqlite3.Connection] = []
        self._run(lambda: None)

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
        if self._process == os.getpid():
            with self._lock:
                self._database.close()

    def find(
        self, key: str, digests: Iterable[bytes], explain: bool, columns: int
    ) -> dict[bytes, Kept]:
        """What is known of these items under a metric's key, with explanations if wanted.

        A row that is damaged, or has not this many columns, is not known.
        """
        wanted = list(dict.fromkeys(digests))

        def look_up() -> dict[bytes, Kept]:
            # No look-up writes: a transaction would lock others out while networks compute.
            found, metric = {}, self._known(key)
            for start in range(0, len(wanted), _LOOKED_UP_AT_ONCE):
                part = wanted[start : start + _LOOKED_UP_AT_ONCE]
                marks = ",".join("?" * len(part))
                rows = self._database.execute(
                    "SELECT item, scores, explained, size, seconds, cut, digest FROM scores "
                    f"WHERE metric=? AND explained>=? AND item IN ({marks})",
                    (metric, explain, *part),
                )
                for *row, digest in rows:
                    scores = _parsed(row[1], explain) if digest == _digest(key, row) else None
                    if scores is not None and len(scores) == columns:
                        found[bytes(row[0])] = Kept(scores, *row[3:])
            return found

        return self._run(look_up)

    def put(self, key: str, rows: Mapping[bytes, Kept], explain: bool) -> None:
        """Keep these, all or none."""
        written = [
            (
                item,
                _written(k.scores),
                int(explain),
                k.size,
                float(k.seconds),
                None if k.cut is None else float(k.cut),
            )
            for item, k in rows.items()
        ]

        def insert() -> None:
            with self._database:
                self._database.execute("INSERT OR IGNORE INTO metrics (key) VALUES (?)", (key,))
                metric = self._known(key)
                self._database.executemany(
                    "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [(metric, *row, _digest(key, row)) for row in written],
                )
                self._forget_oldest()

        self._run(insert)

    def seconds_per_character(self, key: str) -> float | None:
        """What a metric has cost on this machine so far; None if it never ran."""
        seconds, size = self._run(
            lambda: self._database.execute(
                "SELECT SUM(seconds), SUM(size) FROM scores WHERE metric=?", (self._known(key),)
            ).fetchone()
        )
        return seconds / size if size else None

    def counts(self) -> dict[str, int]:
        """How many items are kept, by the signature of their metric."""
        rows = self._run(
            lambda: self._database.execute(
                "SELECT key, COUNT(item) FROM metrics JOIN scores ON metric = id "
                "GROUP BY key ORDER BY key"
            ).fetchall()
        )
        return dict(rows)

    def clear(self) -> int:
        """Forget everything; returns how many items there were."""

        def delete() -> int:
            (count,) = self._database.execute("SELECT COUNT(*) FROM scores").fetchone()
            with self._database:
                self._database.execute("DELETE FROM scores")
                self._database.execute("DELETE FROM metrics")
            self._database.execute("VACUUM")
            return int(count)

        return self._run(delete)

    def _open(self) -> None:
        file = Path(self.path)
        clean = True
        if self.path != ":memory:":
            if file.is_dir():
                raise CauserieError(f"{file} is a folder: name a file in it with --scores")
            file.parent.mkdir(parents=True, exist_ok=True)
            # SQLite removes this file when the last of its users has closed the other.
            clean = not file.with_name(file.name + "-wal").exists()
        self._database = sqlite3.connect(self.path, timeout=WAIT, check_same_thread=False)
        self._process = os.getpid()
        self._opened = _identity(file)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._prepare()
        if not clean and self._database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("it was not closed and is not whole")

    def _set_aside(self, why: sqlite3.Error) -> None:
        """Rename the file, which is damaged, unless somebody else has done so already."""
        self._database.close()
        file = Path(self.path)
        if _identity(file) != self._opened:
            return
        damaged = file.with_name(file.name + ".damaged")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                file.with_name(file.name + suffix).replace(f"{damaged}{suffix}")
        warnings.warn(
            f"the scores in {file} are damaged ({why}): the file is now {damaged.name}, and what "
            "is missing is computed again",
            CauserieWarning,
            stacklevel=2,
        )

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
        if row and not isinstance(row[0], int):
            raise sqlite3.DatabaseError("a metric has no number")
        return row[0] if row else None

    def _forget_oldest(self) -> None:
        (pages,) = self._database.execute("PRAGMA page_count").fetchone()
        (free,) = self._database.execute("PRAGMA freelist_count").fetchone()
        (size,) = self._database.execute("PRAGMA page_size").fetchone()
        if (pages - free) * size > self._largest:
            self._database.execute(
                "DELETE FROM scores WHERE rowid IN (SELECT rowid FROM scores ORDER BY rowid "
                "LIMIT (SELECT COUNT(*) / 4 + 1 FROM scores))"
            )

    def _run(self, work: Callable[[], Result]) -> Result:
        """Do some work with the file, one thread at a time; if it is damaged, again with a new one.

        Whatever else happens to the file is told in one sentence.
        """
        if self._process not in (None, os.getpid()):
            # To close it here would let go of locks that the parent holds.
            self._inherited.append(self._database)
            self._lock, self._process = RLock(), None
        with self._lock:
            try:
                try:
                    if self._process is None:
                        self._open()
                    return work()
                except sqlite3.DatabaseError as error:
                    if not self._is_damage(error):
                        raise
                    self._set_aside(error)
                    self._open()
                    return work()
            except (OSError, sqlite3.Error) as error:
                if "not a database" in str(error):
                    raise CauserieError(
                        f"{self.path} is no file of scores: name another file with --scores"
                    ) from None
                raise CauserieError(
                    f"the scores in {self.path} cannot be used ({error}): make room, wait for "
                    "the other process, or name another file with --scores"
                ) from error

    def _is_damage(self, error: sqlite3.DatabaseError) -> bool:
        """Whether the file, which has to be one of ours, is to blame for an error."""
        if isinstance(error, sqlite3.OperationalError) and not str(error).startswith("no such"):
            return False  # locked, full, read-only and so on
        try:
            with open(self.path, "rb") as file:
                head = file.read(_OWNER_AT + 4)
        except OSError:
            return False
        ours = head.startswith(_HEADER) and head.endswith(OWNER.to_bytes(4, "big"))
        return ours or Path(self.path) == default_path()


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


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another that has its name later."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _digest(key: str, row: Sequence[Any]) -> bytes:
    """Of a row under a metric's key: says whether it is as it was written."""
    return blake2b(repr((key, *row)).encode(), digest_size=16).digest()


def _written(scores: Scores) -> str:
    return json.dumps([[s.value, s.percentile, s.reason, s.explanation] for s in scores])


def _parsed(text: str, explain: bool) -> Scores | None:
    """The scores that were written; None if they are damaged."""
    try:
        return tuple(_score(*row, explain=explain) for row in json.loads(text))
    except (ValueError, TypeError):
        return None


def _score(value: Any, percentile: Any, reason: Any, explanation: Any, *, explain: bool) -> Score:
    for number in (value, percentile):
        if number is not None and (type(number) not in (int, float) or not isfinite(number)):
            raise ValueError
    if (value is None) == (reason is None) or not isinstance(reason, (str, type(None))):
        raise ValueError
    return Score(value, percentile, explanation if explain else None, reason)
