"""Where a run keeps its rows until it is done, so that it can be killed and continued.

Rows are appended to a file; a checkpoint, replaced in one step, says how many bytes of it
count. After a crash the bytes behind the checkpoint are cut off and the run goes on from
there: no row is lost, none is doubled.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from causerie.errors import CauserieError


class Journal:
    """A folder with the rows so far and the state of the run that wrote them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows = folder / "rows.jsonl"
        self._checkpoint = folder / "checkpoint.json"
        self._size = 0
        self._lock = FileLock(folder / "lock")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            folder.mkdir(exist_ok=True)  # the run that held the lock may just have removed it
        except Timeout:
            raise CauserieError(
                f"another run is writing {folder.name.removesuffix('.partial')}: "
                "wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise CauserieError(
                f"{folder.parent} cannot be written to ({error.strerror}): choose another --out"
            ) from error

    def resume(self, fingerprint: Any) -> dict[str, Any] | None:
        """State of an earlier run with the same fingerprint; None starts with no rows."""
        state = None
        try:
            checkpoint = json.loads(self._checkpoint.read_text(encoding="utf-8"))
            same = checkpoint["fingerprint"] == json.loads(json.dumps(fingerprint))
            # rows may be missing if the folder was being removed when the run died
            if same and self._rows.stat().st_size >= checkpoint["size"]:
                state, self._size = checkpoint["state"], checkpoint["size"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._fingerprint = fingerprint
        with open(self._rows, "ab") as rows:
            rows.truncate(self._size)
        return state

    def append(self, rows: Iterable[dict[str, Any]], state: dict[str, Any]) -> None:
        """Add rows and remember the state after them, both or neither."""
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with open(self._rows, "ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(lines)
        checkpoint = {"fingerprint": self._fingerprint, "size": self._size, "state": state}
        temporary = self._checkpoint.with_suffix(".tmp")
        with open(temporary, "wb") as file:
            file.write(json.dumps(checkpoint).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._checkpoint)

    def rows(self) -> Iterator[dict[str, Any]]:
        with open(self._rows, encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def close(self, keep: bool) -> None:
        """Let go of the folder; with `keep`, rows in it stay for a later run to continue."""
        if not (keep and self._size):
            self._checkpoint.unlink(missing_ok=True)  # first: without it nothing is resumed
            shutil.rmtree(self.folder)
        self._lock.release()
