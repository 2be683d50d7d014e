"""What was measured, kept on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from causerie.errors import CauserieError


class Kept:
    """Values on disk, by what decides them: a group and the turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        with self._open() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB)")

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that have one."""
        found = {}
        with self._open() as connection:
            for key in keys:
                row = connection.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = bytes(row[0])
        return found

    def put(self, values: dict[str, bytes]) -> None:
        with self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", values.items())

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=60)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> CauserieError:
        return CauserieError(
            f"{self._path} cannot keep what is measured ({error}): remove it, or choose another "
            "file with --kept"
        )
