"""People's tags and comments on turns, in a file of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from causerie.errors import CauserieError
from causerie.server.explorer.filters import ANY, Key

MAX_TAG, MAX_TAGS, MAX_COMMENT = 60, 20, 4_000
_OWNER = 0x63617865
"""Application id in the file, so that no other database is taken for ours."""


@dataclass(frozen=True)
class Mark:
    """Tags and comment of a turn."""

    tags: tuple[str, ...] = ()
    comment: str = ""


class Marks:
    """The marks in a file; a mark belongs to a turn of a run by name, not to a row of a table."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            (owner,) = self._database.execute("PRAGMA application_id").fetchone()
            (tables,) = self._database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            if owner != _OWNER and tables:
                raise CauserieError(f"{path} is a database of another program: name another file")
            self._database.execute("PRAGMA journal_mode = WAL")
            with self._changing():
                self._database.execute(f"PRAGMA application_id = {_OWNER}")
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS marks (run TEXT, dialogue TEXT, system TEXT, "
                    "turn INTEGER, tag TEXT, comment TEXT, "
                    "PRIMARY KEY (run, dialogue, system, turn, tag)) WITHOUT ROWID"
                )  # a comment is the row without a tag
        except (sqlite3.Error, OSError) as error:
            raise CauserieError(
                f"{path} cannot hold marks ({error}): name another file with --marks"
            ) from error

    def set(self, run: str, key: Key, mark: Mark) -> Mark:
        """Replace the mark of a turn."""
        tags = tuple(dict.fromkeys(" ".join(tag.split()) for tag in mark.tags if tag.strip()))
        if any(len(tag) > MAX_TAG for tag in tags) or len(tags) > MAX_TAGS:
            raise CauserieError(
                f"a turn can have at most {MAX_TAGS} tags of at most {MAX_TAG} characters"
            )
        comment = mark.comment.strip()
        if len(comment) > MAX_COMMENT:
            raise CauserieError(f"a comment can have at most {MAX_COMMENT} characters: shorten it")
        rows = [(run, *key, tag, "") for tag in tags]
        if comment:
            rows.append((run, *key, "", comment))
        with self._lock, self._changing():
            self._database.execute(
                "DELETE FROM marks WHERE run = ? AND dialogue = ? AND system = ? AND turn = ?",
                (run, *key),
            )
            self._database.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?)", rows)
        return Mark(tags, comment)

    def of(self, run: str, keys: Iterable[Key]) -> dict[Key, Mark]:
        """Return the marks of these turns, without turns that have none."""
        found = {}
        for key in dict.fromkeys(keys):
            rows = self._ask(
                "SELECT tag, comment FROM marks "
                "WHERE run = ? AND dialogue = ? AND system = ? AND turn = ? ORDER BY tag",
                (run, *key),
            )
            if rows:
                tags = tuple(str(tag) for tag, _ in rows if tag)
                found[key] = Mark(tags, next((str(c) for tag, c in rows if not tag), ""))
        return found

    def keys(self, run: str, tag: str) -> list[Key]:
        """Return the turns with a tag; `any` stands for all marked turns."""
        term, given = ("", ()) if tag == ANY else (" AND tag = ?", (tag,))
        return self._ask(  # type: ignore[return-value]
            f"SELECT DISTINCT dialogue, system, turn FROM marks WHERE run = ?{term}", (run, *given)
        )

    def tags(self, run: str) -> dict[str, int]:
        """Return the number of turns by tag; the empty tag counts comments."""
        return dict(
            self._ask(  # type: ignore[arg-type]
                "SELECT tag, COUNT(*) FROM marks WHERE run = ? GROUP BY tag ORDER BY tag", (run,)
            )
        )

    def close(self) -> None:
        self._database.close()

    def _ask(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Run a transaction, which succeeds as a whole or not at all."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
