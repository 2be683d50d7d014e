"""One run of `causerie score`: files in, rows and a page out, interruptible at any moment.

What is scored goes to a journal, batch by batch; tables and pages are made from there, so they
show what was scored even if the inputs have changed since.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Block, Record, Rejected, check_inputs, read, write_blocks
from causerie.progress import Progress, Watch, ignore
from causerie.report import Shown
from causerie.scoring.journal import ROWS, TALKS, Journal
from causerie.scoring.scorer import Batch, Scorer
from causerie.scoring.summary import Summary, check_page
from causerie.scoring.table import Layout, Row, by_dialogue, rows_of

if TYPE_CHECKING:
    from typing_extensions import Self

_ABOUT = attrgetter("id", "rating", "date", "system", "background", "metadata")
_SAID = attrgetter("speaker", "text", "role", "time", "references", "features", "message")
_ANEW = "starting anew: the run that was interrupted here"


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
        """Changes when `records` would read otherwise, or the same files under other names.

        Names count without their folders: records without an id are called after them. What is in
        the files counts as it is read, record by record (`digest`).
        """

        def of(path: str) -> str:
            # what comes through a pipe next time may be something else
            return Path(path).name if _is_file(path) else os.urandom(16).hex()

        named = [(self.paths.index(path), of(path)) for path in self.paths]
        return [named, self.format, self.limit, dict(self.columns)]


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
        self._read = sha256()
        """Of all records that have been read."""

    def __enter__(self) -> Self:
        """Check inputs and outputs, and find what an interrupted run has left; loads nothing."""
        self._check()
        self._journal = Journal.temporary() if self.out is None else Journal.beside(self.out)
        try:
            self._journal.open(
                [
                    self.scorer.plan.signature,
                    self.inputs.identity(),
                    [*self.layout.types],
                    self.report is not None,
                ]
            )
            if self._journal.state is None and not self.force:
                self._check_new()
        except BaseException:
            self._journal.close(keep=self.out is not None)
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
        records = self._records()
        if journal.state is not None:
            records = self._resumed(journal.state, records, watch)
        elif journal.others:
            watch(Progress("scoring", note=f"{_ANEW} had other inputs, metrics or options"))
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
        new = self._new_records(records, watch)
        for batch in self.scorer.batches(new, explain=self.layout.explain):
            talks = self._talks(batch, summary.dialogues) if self.report else []
            summary.add(batch, text=self.layout.text)
            block = self._numbered(self.layout.block(batch))
            if journal.hold({ROWS: [block], TALKS: talks}):
                self._keep()
            # what has been read but not scored yet does not count as done
            detail = f"{summary.items:,} {what}"
            watch(Progress("scoring", self._position, total, "bytes", detail))
        self._keep()
        return summary

    def rows(self) -> Iterator[Row]:
        """What has been scored, in the order of the input."""
        for block in self.blocks():
            yield from rows_of(block)

    def blocks(self) -> Iterator[Block]:
        """The same, column by column."""
        paths = self.inputs.paths
        for block in self._journal.read(ROWS):
            yield {**block, "file": [paths[number] for number in block["file"]]}

    def write(self) -> list[Path]:
        """Write the table and the page, as far as they are wanted; returns what was written."""
        if self.out:
            write_blocks(self.blocks(), self.out, self.layout.types, self._about())
        if self.report:
            talks = list(self._journal.read(TALKS))
            self.summary.write_page(self.report, self.scorer.plan, talks, self.inputs.title)
        return [path for path in (self.out, self.report) if path]

    def _about(self) -> dict[str, Any]:
        """What the table says about itself: its columns, and what became of the inputs."""
        summary = self.summary
        counts = ("items", "dialogues", "records", "rejected", "nothing", "tool_messages", "cuts")
        told = {name: getattr(summary, name) for name in counts}
        return {**self.layout.about(), "inputs": [Path(p).name for p in self.inputs.paths], **told}

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
        check_page(self.report)
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

    def _records(self) -> Iterator[Record]:
        """All records, each of them counted in the digest of what has been read."""
        self._read = sha256()
        for record in self.inputs.records(lambda position: setattr(self, "_position", position)):
            self._read.update(digest(record))
            yield record

    def _resumed(
        self, state: dict[str, Any], records: Iterator[Record], watch: Watch
    ) -> Iterator[Record]:
        """The records that come after those which an interrupted run has scored.

        If these are not what they were, all is forgotten and scored anew.
        """
        summary = Summary.from_json(state["summary"])
        for _ in itertools.islice(records, summary.records):
            pass
        if self._read.hexdigest() == state["read"]:
            self.summary = summary
            done = f"{summary.items} rows are already done"
            watch(Progress("scoring", note=f"continuing an interrupted run: {done}"))
            return records
        if not self.force:
            self._check_new()
        self._journal.forget()
        watch(Progress("scoring", note=f"{_ANEW} has read what the inputs no longer hold"))
        return self._records()

    def _keep(self) -> None:
        """Have the journal remember what it was given, with the state of the run after it."""
        state = {"read": self._read.hexdigest(), "summary": self.summary.to_json()}
        self._journal.append({}, state)

    def _numbered(self, block: Block) -> Block:
        """The rows with the number of their file: the next run may name it by another path."""
        numbers = {path: number for number, path in reversed([*enumerate(self.inputs.paths)])}
        return {**block, "file": [numbers[path] for path in block["file"]]}

    def _new_records(
        self, records: Iterable[Record], watch: Watch
    ) -> Iterator[Dialogue | Exchange]:
        """Good records that the journal does not have; bad ones are reported and counted."""
        summary = self.summary
        for record in records:
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


def digest(record: Record) -> bytes:
    """Of all that a record holds, wherever its file lies."""
    if isinstance(record, Rejected):
        return sha256(repr((record.line, record.reason)).encode("utf-8", "replace")).digest()
    dialogue, turn = (record.dialogue, record.turn) if isinstance(record, Exchange) else (record, 0)
    content = (type(record).__name__, turn, _ABOUT(dialogue), [*map(_SAID, dialogue.turns)])
    return sha256(repr(content).encode("utf-8", "replace")).digest()


def _is_file(path: str) -> bool:
    return path != "-" and Path(path).is_file()
