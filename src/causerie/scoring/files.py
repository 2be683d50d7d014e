"""One run of `causerie score`: files in, rows out, interruptible at any moment."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causerie._version import __version__
from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.io import Record, Rejected, read
from causerie.scoring.journal import Journal
from causerie.scoring.summary import Summary
from causerie.scoring.table import Layout, Row, chunks, exchanges_of, score_chunk


@dataclass(frozen=True)
class Inputs:
    """Which records a run reads."""

    paths: tuple[str, ...]
    format: str | None = None
    limit: int | None = None

    def records(self, watch: Callable[[int], None] = lambda done: None) -> Iterator[Record]:
        """The records of every file in turn; a limit counts the good ones.

        `watch` is told how many bytes have been read, of `size` in all.
        """
        good = before = 0
        for path in self.paths:

            def told(position: int, before: int = before) -> None:
                watch(before + position)

            for record in read(path, self.format, told):
                yield record
                good += not isinstance(record, Rejected)
                if good == self.limit:
                    return
            before += os.path.getsize(path) if _is_file(path) else 0

    @property
    def size(self) -> int | None:
        """Bytes to read; None where that cannot be known."""
        if self.limit is not None or not self.rereadable:
            return None
        return sum(os.path.getsize(path) for path in self.paths)

    @property
    def rereadable(self) -> bool:
        """Whether the inputs can be read twice: files can, standard input and pipes cannot."""
        return all(_is_file(path) for path in self.paths)

    def identity(self) -> list[Any]:
        """Changes when what `records` yields may have changed."""

        def of(path: str) -> list[Any]:
            if not _is_file(path):  # what comes next time may be something else
                return [os.urandom(16).hex()]
            status = os.stat(path)
            return [path, status.st_size, status.st_mtime_ns]

        return [[of(path) for path in self.paths], self.format, self.limit]


def _is_file(path: str) -> bool:
    return path != "-" and Path(path).is_file()


@dataclass(frozen=True)
class Watcher:
    """Who is told how a run goes; the command line draws its progress bar with it."""

    resumed: Callable[[Summary], None] = lambda summary: None
    rejected: Callable[[Rejected], None] = lambda rejected: None
    read: Callable[[int], None] = lambda position: None
    """How many bytes of the inputs have been read."""
    advanced: Callable[[Summary], None] = lambda summary: None


class Run:
    """Scores all records into a journal, from where `rows` gives them back in order.

    With `out`, the journal lies beside it and an interrupted run is continued by the next
    one with the same inputs and metrics; without, it is temporary.
    """

    def __init__(
        self,
        inputs: Inputs,
        layout: Layout,
        engines: Engines,
        *,
        out: Path | None = None,
        strict: bool = False,
    ) -> None:
        for path in inputs.paths:
            if path != "-" and not Path(path).exists():
                raise CauserieError(f"no such file: {path}")
            if out and _is_file(path) and out.exists() and out.samefile(path):
                raise CauserieError(f"{out} is an input: choose another --out")
        if out and out.is_dir():
            raise CauserieError(f"{out} is a folder: name a file in it with --out")
        self.inputs, self.layout, self.engines, self.strict = inputs, layout, engines, strict
        self.out = out
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        if out is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="causerie-")
            self.journal = Journal(Path(self._scratch.name) / "journal")
        else:
            self.journal = Journal(out.with_name(out.name + ".partial"))

    @property
    def signature(self) -> str:
        """What decides the numbers: version, metrics and their weights."""
        return " ".join([f"causerie|{__version__}", *(m.signature for m in self.layout.metrics)])

    def execute(self, watcher: Watcher) -> Summary:
        """Score what the journal does not have yet."""
        layout = self.layout
        state = self.journal.resume(
            [self.signature, self.inputs.identity(), layout.level, layout.speaker, [*layout.types]]
        )
        summary = Summary.from_json(state) if state else Summary.empty(self._directions())
        if state:
            watcher.resumed(summary)
        if self.strict and summary.rejected:
            raise CauserieError(
                f"{summary.rejected} bad records were skipped before this run was interrupted "
                "(stopped here because of --strict)"
            )
        for chunk in chunks(self._new_records(summary, watcher), layout.chunk):
            rows = self._score(chunk, summary)
            self.journal.append(rows, summary.to_json())
            watcher.advanced(summary)
        return summary

    def rows(self) -> Iterator[Row]:
        """What has been scored, in the order of the input."""
        return self.journal.rows()

    def close(self, keep: bool) -> None:
        """Let go of the journal; keep it if the run is to be continued."""
        self.journal.close(keep)
        if self._scratch:
            self._scratch.cleanup()

    def _directions(self) -> dict[str, bool]:
        level = self.layout.level
        return {c: m.higher_is_better for m in self.layout.metrics for c in m.columns(level)}

    def _new_records(self, summary: Summary, watcher: Watcher) -> Iterator[Dialogue | Exchange]:
        """Good records that the journal does not have; bad ones are reported and counted."""
        for record in itertools.islice(self.inputs.records(watcher.read), summary.records, None):
            summary.records += 1
            if isinstance(record, Rejected):
                if self.strict:
                    raise CauserieError(f"{record} (stopped here because of --strict)")
                summary.rejected += 1
                watcher.rejected(record)
            else:
                summary.see(record, len(exchanges_of(record, self.layout.speaker)))
                yield record

    def _score(self, chunk: Sequence[Dialogue | Exchange], summary: Summary) -> list[Row]:
        before = self.engines.truncation()
        rows = []
        for item, scores in score_chunk(chunk, self.layout):
            summary.add(item, scores)
            rows.append(self.layout.row(item, scores))
        for engine, (truncated, inputs) in self.engines.truncation().items():
            old = before.get(engine, (0, 0))
            total = summary.truncated.setdefault(engine, [0, 0])
            total[0] += truncated - old[0]
            total[1] += inputs - old[1]
        return rows
