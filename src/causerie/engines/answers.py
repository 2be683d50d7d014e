"""Answers that were paid for, kept on disk as they arrive."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from causerie.errors import CauserieError

OWNER = int.from_bytes(b"caua", "big")
"""What SQLite calls an application id: says whose file it is."""
WAIT = 60.0
"""Seconds to wait for another process that has the file locked."""


class Answers:
    """A file of answers (SQLite) by a digest of the question; None is the platform's cache folder.

    Every answer is written by itself, so that of a killed process nothing is lost that had
    arrived. Threads and processes may share the file: nobody keeps it open.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, str]:
        """What is known of these questions."""
        with self._opened() as database:
            rows = (
                database.execute("SELECT question, answer FROM answers WHERE question=?", (key,))
                for key in dict.fromkeys(keys)
            )
            return {bytes(key): text for row in rows for key, text in row}

    def put(self, key: bytes, answer: str) -> None:
        with self._opened() as database, database:
            database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=WAIT)) as database:
                self._prepare(database)
                yield database
        except (OSError, sqlite3.Error) as error:
            raise CauserieError(
                f"the answers in {self.path} cannot be used ({error}): make room, restore the "
                "file or name another one with --set judge.answers=FILE"
            ) from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        (owner,) = database.execute("PRAGMA application_id").fetchone()
        if owner == OWNER:
            return
        (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables:
            raise CauserieError(
                f"{self.path} is a database, but not one of a judge's answers: name another file "
                "with --set judge.answers=FILE"
            )
        database.execute("PRAGMA journal_mode = WAL")
        with database:
            database.execute("BEGIN IMMEDIATE")  # one process at a time
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (question BLOB PRIMARY KEY, answer TEXT)"
            )
            database.execute(f"PRAGMA application_id = {OWNER}")


def default_path() -> Path:
    """Where answers are kept unless another place is named."""
    from platformdirs import user_cache_path

    return user_cache_path("causerie") / "answers-1.sqlite"
