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
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._rows = folder / "rows.jsonl"
        self._checkpoint = folder / "checkpoint.json"
        self._size = 0
        self._lock = FileLock(folder / "lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise CauserieError(
                f"another run is writing {folder.name.removesuffix('.partial')}: "
                "wait for it, or choose another --out"
            ) from None

    def resume(self, fingerprint: Any) -> dict[str, Any] | None:
        """State of an earlier run with the same fingerprint; None starts with no rows."""
        state = None
        try:
            checkpoint = json.loads(self._checkpoint.read_text(encoding="utf-8"))
            # JSON and back, because tuples come back as lists
            if checkpoint["fingerprint"] == json.loads(json.dumps(fingerprint)):
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

    def close(self) -> None:
        """Let go of the folder; what is in it stays for a later run."""
        self._lock.release()

    def remove(self) -> None:
        """The rows have reached their destination: nothing is left to continue."""
        shutil.rmtree(self.folder)
