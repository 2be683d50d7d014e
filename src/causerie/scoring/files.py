"""One run of `causerie score`: files in, rows and a page out, interruptible at any moment.

What is scored goes to a journal, batch by batch; tables and pages are made from there, so they
show what was scored even if the inputs have changed since.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Record, Rejected, check_inputs, read, write_table
from causerie.progress import Progress, Watch, ignore
from causerie.report import Shown
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.summary import Summary
from causerie.scoring.table import Layout, Row, by_dialogue

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Inputs:
    """Which records a run reads."""

    paths: tuple[str, ...]
    format: str | None = None
    limit: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """What the files call the fields that they name otherwise."""

    def records(self, told: Callable[[int], None] = lambda position: None) -> Iterator[Record]:
        """The records of every file in turn; a limit counts the good ones.

        `told` hears how many bytes have been read, of `size` in all.
        """
        good = before = 0
        for path in self.paths:

            def here(position: int, before: int = before) -> None:
                told(before + position)

            for record in read(path, self.format, here, self.columns):
                yield record
                good += not isinstance(record, Rejected)
                if good == self.limit:
                    return
            before += os.path.getsize(path) if _is_file(path) else 0

    @property
    def size(self) -> int | None:
        """Bytes to read; None where that cannot be known."""
        if self.limit is not None or not all(map(_is_file, self.paths)):
            return None
        return sum(os.path.getsize(path) for path in self.paths)

    @property
    def title(self) -> str:
        """The names of the files, for people."""
        return " and ".join("standard input" if p == "-" else Path(p).name for p in self.paths)

    def identity(self) -> list[Any]:
        """Changes when what `records` yields may have changed."""

        def of(path: str) -> list[Any]:
            if not _is_file(path):  # what comes next time may be something else
                return [os.urandom(16).hex()]
            status = os.stat(path)
            return [path, status.st_size, status.st_mtime_ns]

        return [[of(p) for p in self.paths], self.format, self.limit, dict(self.columns)]


class Run:
    """Scores all records into a journal and writes a table and a page from it.

    With `out`, the journal lies beside it, and an interrupted run is continued by the next one
    with the same inputs, metrics and options; without, it is temporary. A run is used in a `with`
    block: when that ends well the journal is removed, and otherwise kept.
    """

    def __init__(
        self,
        scorer: Scorer,
        inputs: Inputs,
        layout: Layout,
        *,
        out: Path | None = None,
        report: Path | None = None,
        strict: bool = False,
        force: bool = False,
    ) -> None:
        self.scorer, self.inputs, self.layout = scorer, inputs, layout
        self.out, self.report, self.strict, self.force = out, report, strict, force
        self.summary = Summary.of(scorer.plan)
        self._shown = Shown(layout.explain)
        self._position = 0
        """Bytes of the inputs that have been read."""

    def __enter__(self) -> Self:
        """Check inputs and outputs, and find what an interrupted run has left; loads nothing."""
        self._check()
        if self.out is None:
            self._journal = Journal(Path(tempfile.mkdtemp(prefix="causerie-")))
        else:
            self._journal = Journal(self.out.with_name(self.out.name + ".partial"))
        self._journal.open(
            [
                self.scorer.plan.signature,
                self.inputs.identity(),
                [*self.layout.types],
                self.report is not None,
            ]
        )
        try:
            if self._journal.state is None and not self.force:
                self._check_new()
        except BaseException:
            self._journal.close(keep=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._journal.close(keep=kind is not None and self.out is not None)

    @property
    def kept(self) -> bool:
        """Whether the next run can go on from what this one has scored."""
        return self.out is not None and self._journal.size > 0

    def execute(self, watch: Watch = ignore) -> Summary:
        """Score what the journal does not have yet."""
        journal = self._journal
        if journal.state is not None:
            self.summary = Summary.from_json(journal.state)
            done = f"{self.summary.items} rows are already done"
            watch(Progress("scoring", note=f"continuing an interrupted run: {done}"))
        elif journal.others:
            watch(
                Progress(
                    "scoring",
                    note="starting anew: the run that was interrupted here had other inputs, "
                    "metrics or options",
                )
            )
        summary = self.summary
        if self.strict and summary.rejected:
            raise CauserieError(
                f"{summary.rejected} bad records were skipped before this run was interrupted "
                "(stopped here because of --strict)"
            )
        journal.begin()
        for talk in journal.read(TALKS):
            self._shown.take(talk)
        total = self.inputs.size
        what = "responses" if summary.level == "turn" else "dialogues"
        records = self._new_records(watch)
        for batch in self.scorer.batches(records, explain=self.layout.explain):
            talks = self._talks(batch, summary.dialogues) if self.report else []
            summary.add(batch, text=self.layout.text)
            journal.append({ROWS: self.layout.rows(batch), TALKS: talks}, summary.to_json())
            # what has been read but not scored yet does not count as done
            detail = f"{summary.items:,} {what}"
            watch(Progress("scoring", self._position, total, "bytes", detail))
        return summary

    def rows(self) -> Iterator[Row]:
        """What has been scored, in the order of the input."""
        return self._journal.read(ROWS)

    def write(self) -> list[Path]:
        """Write the table and the page, as far as they are wanted; returns what was written."""
        if self.out:
            types = self.layout.types
            write_table(self.rows(), list(types), self.out, types)
        if self.report:
            talks = list(self._journal.read(TALKS))
            self.summary.write_page(self.report, self.scorer.plan, talks, self.inputs.title)
        return [path for path in (self.out, self.report) if path]

    def _check(self) -> None:
        check_inputs(self.inputs.paths, self.inputs.format, self.inputs.columns, self.out)
        for option, path in (("--out", self.out), ("--report", self.report)):
            if path is None:
                continue
            if path.is_dir():
                raise CauserieError(f"{path} is a folder: name a file in it with {option}")
            if any(path.exists() and path.samefile(p) for p in self.inputs.paths if _is_file(p)):
                raise CauserieError(f"{path} is an input: choose another {option}")
        if self.report is None:
            return
        if self.report.suffix.lower() not in (".html", ".htm"):
            raise CauserieError(f"{self.report} is to be a page: end its name with .html")
        if self.layout.plan.level != "turn":
            raise CauserieError("--report shows scored turns: leave --level dialogue out")
        if not self.layout.text:
            raise CauserieError("--report shows conversations: leave --no-text out")

    def _check_new(self) -> None:
        """Nothing is overwritten unasked, except what an interrupted run of this kind wrote."""
        for path in (self.out, self.report):
            if path is not None and path.exists():
                raise CauserieError(
                    f"{path} exists already: name another file, or overwrite it with --force"
                )

    def _new_records(self, watch: Watch) -> Iterator[Dialogue | Exchange]:
        """Good records that the journal does not have; bad ones are reported and counted."""
        summary = self.summary
        records = self.inputs.records(lambda position: setattr(self, "_position", position))
        for record in itertools.islice(records, summary.records, None):
            if isinstance(record, Rejected):
                if self.strict:
                    raise CauserieError(f"{record} (stopped here because of --strict)")
                summary.reject()
                watch(Progress("scoring", note=f"skipped {record}"))
            else:
                summary.see(record)
                yield record

    def _talks(self, batch: Batch, before: int) -> Iterator[dict[str, Any]]:
        """The conversations of a batch that the page shows; so many came before them."""
        for number, (dialogue, scored) in enumerate(by_dialogue(batch), before):
            if talk := self._shown.add(number, dialogue, scored):
                yield talk


ROWS, TALKS = "rows.jsonl", "conversations.jsonl"


class Journal:
    """A folder with the rows so far and the state of the run that wrote them.

    Lines are appended to its files; a checkpoint, replaced in one step, says how many bytes of
    them count. After a crash the bytes behind the checkpoint are cut off and the run goes on from
    there: no row is lost, none is doubled.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: dict[str, Any] | None = None
        """Of an earlier run with the same fingerprint, once it is open."""
        self.others = False
        """Whether the folder has rows of a run with another fingerprint."""
        self._fingerprint: Any = None
        self._sizes = dict.fromkeys((ROWS, TALKS), 0)
        self._checkpoint = folder / "checkpoint.json"
        self._lock = FileLock(folder / "lock")

    @property
    def size(self) -> int:
        """Bytes of rows that count."""
        return self._sizes[ROWS]

    def open(self, fingerprint: Any) -> None:
        """Take the folder for oneself and see what is in it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self.folder.mkdir(exist_ok=True)  # the run that held the lock may just have removed it
        except Timeout:
            raise CauserieError(
                f"another run is writing {self.folder.name.removesuffix('.partial')}: "
                "wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise CauserieError(
                f"{self.folder.parent} cannot be written to ({error.strerror}): "
                "choose another --out"
            ) from error
        self._fingerprint = json.loads(json.dumps(fingerprint))
        try:
            checkpoint = json.loads(self._checkpoint.read_text(encoding="utf-8"))
            sizes = {name: int(checkpoint["sizes"][name]) for name in self._sizes}
            # rows may be missing if the folder was being removed when the run died
            whole = all((self.folder / n).stat().st_size >= size for n, size in sizes.items())
            if whole and checkpoint["fingerprint"] == self._fingerprint:
                self.state, self._sizes = checkpoint["state"], sizes
            else:
                self.others = True
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def begin(self) -> None:
        """Cut off whatever does not count."""
        self.others = False
        for name, size in self._sizes.items():
            with open(self.folder / name, "ab") as file:
                file.truncate(size)

    def append(self, lines: Mapping[str, Iterable[Row]], state: dict[str, Any]) -> None:
        """Add lines to the files and remember the state after them, all or nothing."""
        sizes = dict(self._sizes)
        for name, rows in lines.items():
            data = "".join(json.dumps(row) + "\n" for row in rows).encode()
            self._write(self.folder / name, "ab", data)
            sizes[name] += len(data)
        checkpoint = {"fingerprint": self._fingerprint, "sizes": sizes, "state": state}
        temporary = self._checkpoint.with_suffix(".tmp")
        self._write(temporary, "wb", json.dumps(checkpoint).encode())
        os.replace(temporary, self._checkpoint)
        self._sizes = sizes  # only now is anything kept

    def read(self, name: str) -> Iterator[Row]:
        """The lines of a file."""
        with open(self.folder / name, encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def close(self, keep: bool) -> None:
        """Let go of the folder; with `keep`, what is in it stays for a later run."""
        if not (keep and (self.size or self.others)):
            self._checkpoint.unlink(missing_ok=True)  # first: without it nothing is resumed
            shutil.rmtree(self.folder)
        self._lock.release()

    @staticmethod
    def _write(path: Path, mode: str, data: bytes) -> None:
        with open(path, mode) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _is_file(path: str) -> bool:
    return path != "-" and Path(path).is_file()
