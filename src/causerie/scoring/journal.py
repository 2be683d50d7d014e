"""What a run has scored so far, on disk: rows, conversations, and how far the run has come."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from hashlib import _Hash

ROWS, TALKS = "rows.jsonl", "conversations.jsonl"
WAIT = 1.0
"""Seconds that a run waits for another one in its place, which may be just ending."""
HELD = 2 << 20
"""Bytes of rows that are held before they are kept, at most."""
HELD_SECONDS = 1.0
_PARTIAL, _OLD = ".partial", ".old"
_TEMPORARY = "causerie-run-"
_BLOCK = 1 << 20


class Journal:
    """A folder with the rows so far and the state of the run that wrote them.

    Lines are appended to its files; a checkpoint, replaced in one step, says how many bytes of
    them count and has their digest, so nothing damaged goes on. After a crash the bytes behind the
    checkpoint are cut off and the run goes on from there: no row is lost, none is doubled.
    Whoever holds its lock has the folder to himself; a folder is renamed before it is removed, so
    that nobody finds half of one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: dict[str, Any] | None = None
        """Of an earlier run with the same fingerprint, once it is open."""
        self.others = False
        """Whether the folder has rows of a run with another fingerprint."""
        self._looked = False
        """Whether it is known what an earlier run has left here."""
        self._fingerprint: Any = None
        self._sizes = dict.fromkeys((ROWS, TALKS), 0)
        self._sums = {name: sha256() for name in self._sizes}
        """Of the bytes that count."""
        self._held: dict[str, list[bytes]] = {name: [] for name in self._sizes}
        """Lines that are to be added."""
        self._kept = 0.0
        """When the last ones were."""
        self._checkpoint = folder / "checkpoint.json"
        self._lock = FileLock(folder / "lock")

    @classmethod
    def beside(cls, out: Path) -> Journal:
        """The journal of a run that writes `out`; the next run of that kind finds it there."""
        for left in out.parent.glob(f".{_literal(out.name)}{_PARTIAL}.*{_OLD}"):
            shutil.rmtree(left, ignore_errors=True)  # somebody died while removing it
        return cls(out.with_name(out.name + _PARTIAL))

    @classmethod
    def temporary(cls) -> Journal:
        """A journal that no other run will find; those of runs that died are cleared away."""
        place = Path(tempfile.gettempdir())
        for left in place.glob(f"{_TEMPORARY}{'[a-z0-9_]' * 8}"):
            with suppress(OSError, CauserieError):
                if _is_ours(left) and _entries(left):
                    cls(left).take(0).close(keep=False)
                elif _is_ours(left):  # if it is just being made, it is made again
                    left.rmdir()
        for left in place.glob(f".{_TEMPORARY}*{_OLD}"):
            if _is_ours(left):
                shutil.rmtree(left, ignore_errors=True)
        return cls(Path(tempfile.mkdtemp(prefix=_TEMPORARY)))

    @property
    def size(self) -> int:
        """Bytes of rows that count."""
        return self._sizes[ROWS]

    def take(self, wait: float = WAIT) -> Journal:
        """Make the folder one's own, or raise `CauserieError`."""
        name = self.folder.name.removesuffix(_PARTIAL)
        while not self._lock.is_locked:
            if any(path.is_symlink() for path in (self.folder, *_entries(self.folder))):
                raise CauserieError(
                    f"{self.folder} is a link, or has one in it, which no run makes: remove it"
                )
            try:
                self.folder.mkdir(0o700, parents=True, exist_ok=True)
                self._lock.acquire(timeout=wait)
            except Timeout as error:
                raise CauserieError(
                    f"another run is writing {name}: wait for it, or choose another --out"
                ) from error
            except FileNotFoundError:
                continue  # the run that had it has just removed it
            except OSError as error:
                raise CauserieError(
                    f"{self.folder.parent} cannot be written to ({error.strerror}): "
                    "choose another --out"
                ) from error
        return self

    def open(self, fingerprint: Any) -> None:
        """Take the folder for oneself and see what is in it."""
        self.take()
        self._fingerprint = json.loads(json.dumps(fingerprint))
        try:
            own, _, body = self._checkpoint.read_bytes().partition(b"\n")
            if own.decode() != sha256(body).hexdigest():
                raise ValueError("damaged")
            checkpoint = json.loads(body)
            sizes = {name: int(checkpoint["sizes"][name]) for name in self._sizes}
            sums = {name: self._sum(name, size) for name, size in sizes.items()}
            # rows may be missing if the folder was being removed when the run died
            whole = {n: s.hexdigest() for n, s in sums.items()} == checkpoint["sha256"]
            if whole and checkpoint["fingerprint"] == self._fingerprint:
                self.state, self._sizes, self._sums = checkpoint["state"], sizes, sums
            else:
                self.others = True
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._looked = True

    def forget(self) -> None:
        """Let nothing that is there count any more."""
        self.state, self._sizes = None, dict.fromkeys(self._sizes, 0)
        self._sums = {name: sha256() for name in self._sizes}

    def begin(self) -> None:
        """Cut off whatever does not count."""
        self.others = False
        if self.state is None:  # first: with it, other rows might be taken for those of its run
            self._checkpoint.unlink(missing_ok=True)
        for name, size in self._sizes.items():
            with self._guarded(), open(self.folder / name, "ab") as file:
                file.truncate(size)

    def hold(self, lines: Mapping[str, Iterable[Mapping[str, Any]]]) -> bool:
        """Take lines that `append` will add; True if they have become so many that it should now.

        To wait for a disk takes longer than many rows do, so a kill may cost a second's work, but
        never more than an eighth of all.
        """
        for name, rows in lines.items():
            self._held[name] += [(json.dumps(row) + "\n").encode() for row in rows]
        held = sum(len(line) for line in self._held[ROWS])
        return held >= min(self.size / 8, HELD) or time.monotonic() - self._kept > HELD_SECONDS

    def append(self, lines: Mapping[str, Iterable[Mapping[str, Any]]], state: Any) -> None:
        """Add lines after those that are held and remember the state after them, all or nothing."""
        self.hold(lines)
        sizes, sums = dict(self._sizes), {name: one.copy() for name, one in self._sums.items()}
        for name, held in self._held.items():
            if held:
                self._write(self.folder / name, "ab", held)
                sizes[name] += sum(map(len, held))
            for line in held:
                sums[name].update(line)
        checkpoint = {
            "fingerprint": self._fingerprint,
            "sizes": sizes,
            "sha256": {name: one.hexdigest() for name, one in sums.items()},
            "state": state,
        }
        body = json.dumps(checkpoint).encode()
        temporary = self._checkpoint.with_suffix(".tmp")
        self._write(temporary, "wb", [sha256(body).hexdigest().encode() + b"\n", body])
        os.replace(temporary, self._checkpoint)
        self._sizes, self._sums = sizes, sums  # only now is anything kept
        self._held, self._kept = {name: [] for name in sizes}, time.monotonic()

    def _sum(self, name: str, size: int) -> _Hash:
        """The digest of the first bytes of a file."""
        found = sha256()
        with open(self.folder / name, "rb") as file:
            while size > 0 and (block := file.read(min(size, _BLOCK))):
                found.update(block)
                size -= len(block)
        return found

    def read(self, name: str) -> Iterator[dict[str, Any]]:
        """The lines of a file."""
        with open(self.folder / name, encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def close(self, keep: bool) -> None:
        """Let go of the folder; with `keep`, what is in it stays for a later run."""
        if not self._lock.is_locked:
            with suppress(OSError):  # somebody else has it, or it is empty
                self.folder.rmdir()
            return
        # A signal may have come before anybody looked at what an earlier run has left.
        unseen = not self._looked and self._checkpoint.exists()
        if keep and (self.size or self.others or unseen):
            self._lock.release()
            return
        name = self.folder.name.removeprefix(".")
        gone = self.folder.with_name(f".{name}.{secrets.token_hex(4)}{_OLD}")
        self.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        self._lock.release()

    def _write(self, path: Path, mode: str, data: Iterable[bytes]) -> None:
        with self._guarded(), open(path, mode) as file:
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CauserieError(
                f"{self.folder.parent} cannot take more rows ({error.strerror}): make room there, "
                "or choose another place"
            ) from error


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # it is not there, or `take` says what is wrong with it
        return []


def _is_ours(folder: Path) -> bool:
    """Whether this user made the folder, in a place where everybody may make some."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and (os.name != "posix" or status.st_uid == os.getuid())


def _literal(name: str) -> str:
    return re.sub(r"[*?[]", r"[\g<0>]", name)
