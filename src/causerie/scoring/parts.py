"""A folder of scored parts: many workers write them, each alone, and together they are one run.

Inputs are cut into chunks of whole records, always at the same places. A chunk is scored into one
part: a Parquet file whose name says where it belongs and has a digest of its records and of all
that decides its rows. Parts appear whole or not at all, so a chunk whose part is there is done,
whoever did it and whenever; its summary is in the part, and summaries merge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from causerie._version import __version__
from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Block, Folder, Record, Rejected, parquet_bytes
from causerie.io.tables import read_about
from causerie.report import Shown
from causerie.report.page import MAX_DIALOGUES
from causerie.scoring.files import digest
from causerie.scoring.scorer import BATCH_CHARACTERS, LARGEST_BATCH, Scorer
from causerie.scoring.summary import Summary
from causerie.scoring.table import Layout, by_dialogue

PART_TURNS = 1024
"""Of a part: what a worker that dies takes with it, and what nobody waits for at the end."""
SUMMARY = "_summary.json"
"""Written last; what begins with _ or . is no part of a table to those who read whole folders."""
_PART = re.compile(r"part-(\d{6})-(\d{6})-[0-9a-f]{16}\.parquet")
_LEFT = re.compile(r"\.part-.*\.tmp")


@dataclass(frozen=True)
class Chunk:
    """Records of one input that follow each other."""

    input: int
    number: int
    records: tuple[Record, ...]
    before: int
    """How many records of the input come before them."""
    bytes: int
    """How much of the input was read for them."""


def chunks_of(
    records: Iterable[Record], number: int = 0, position: Callable[[], int] = lambda: 0
) -> Iterator[Chunk]:
    """Cut the records of an input into chunks; `position` tells how far it has been read."""
    held: list[Record] = []
    count = before = turns = characters = start = 0
    for record in records:
        held.append(record)
        turns += 1
        if not isinstance(record, Rejected):
            dialogue = record if isinstance(record, Dialogue) else record.dialogue
            turns += len(dialogue.turns) - 1
            characters += sum(len(turn.text) for turn in dialogue.turns)
        if turns >= PART_TURNS or characters >= BATCH_CHARACTERS:
            yield Chunk(number, count, tuple(held), before, position() - start)
            start, before, count = position(), before + len(held), count + 1
            held, turns, characters = [], 0, 0
    if held:
        yield Chunk(number, count, tuple(held), before, position() - start)


@dataclass(frozen=True)
class Told:
    """What became of a chunk."""

    input: int
    number: int
    name: str
    """Of its part."""
    items: int = 0
    bytes: int = 0
    skipped: tuple[str, ...] = ()
    """Its bad records."""
    found: bool = False
    """Whether its part was there already."""


@dataclass(frozen=True)
class Job:
    """What is done with every chunk; it is sent to every worker."""

    layout: Layout
    folder: Folder
    report: bool = False
    """Whether a page will show conversations."""
    version: str = __version__

    def __post_init__(self) -> None:
        _ = self._decides  # before it is sent, so that all workers have the same

    def name_of(self, chunk: Chunk) -> str:
        """What the part of a chunk is called."""
        found = sha256(self._decides)
        for record in chunk.records:
            source = record.source if isinstance(record, Rejected) else _dialogue(record).source
            found.update(repr(source).encode("utf-8", "replace") + digest(record))
        return f"part-{chunk.input:06d}-{chunk.number:06d}-{found.hexdigest()[:16]}.parquet"

    @cached_property
    def _decides(self) -> bytes:
        """All that decides rows besides the records."""
        layout = self.layout
        told = [layout.plan.signature, list(layout.types), layout.text, self.report]
        return json.dumps(told).encode()

    def check(self) -> None:
        """Refuse to work for somebody with another version."""
        if self.version != __version__:
            raise CauserieError(
                f"a worker has causerie {__version__} and was sent work by {self.version}: "
                "install the same version everywhere"
            )


class Worker:
    """Scores one chunk after the other; its networks stay loaded."""

    def __init__(self, job: Job) -> None:
        job.check()
        self._job = job
        self._scorer = Scorer(job.layout.plan)

    def score(self, chunk: Chunk) -> Told:
        """Write the part of a chunk, unless it is there."""
        job, name = self._job, self._job.name_of(chunk)
        if job.folder.has(name):
            about = read_part(job.folder, name)
            items = Summary.from_json(about["summary"]).items
            return Told(chunk.input, chunk.number, name, items, chunk.bytes, found=True)
        layout, summary = job.layout, Summary.of(job.layout.plan)
        blocks: list[Block] = []
        talks: list[dict[str, Any]] = []
        shown = Shown(layout.explain)
        # A page shows the first conversations; of which input they are is told when all is done.
        wanted = job.report and chunk.before < MAX_DIALOGUES and chunk.input < MAX_DIALOGUES
        good = list(_good(chunk, summary))
        for batch in self._scorer.batches(good, explain=layout.explain, first=LARGEST_BATCH):
            if wanted:
                scored = enumerate(by_dialogue(batch), summary.dialogues)
                found = (shown.add(n, dialogue, scores) for n, (dialogue, scores) in scored)
                talks += [talk for talk in found if talk]
            summary.add(batch, text=layout.text)
            blocks.append(layout.block(batch))
        about = {**layout.about(), "summary": summary.to_json(), "talks": talks}
        job.folder.write(name, parquet_bytes(blocks, layout.types, about))
        skipped = tuple(str(one) for one in chunk.records if isinstance(one, Rejected))
        return Told(chunk.input, chunk.number, name, summary.items, chunk.bytes, skipped)


def read_part(folder: Folder, name: str) -> dict[str, Any]:
    """What a part says about itself; one that is damaged is removed."""
    import pyarrow

    try:
        with folder.open(name) as file:
            about = read_about(file)
        if "summary" in about:
            return about
        why = "it is no part"
    except (pyarrow.ArrowException, ValueError, KeyError) as error:
        why = str(error).partition("\n")[0]
    folder.remove(name)
    raise CauserieError(f"{name} was damaged and is removed ({why}): the same command mends it")


def check_folder(folder: Folder, force: bool) -> int:
    """How many parts an earlier run has left; refuse to write where something else is.

    With `force`, what a finished run has written is removed.
    """
    names = folder.names()
    parts = [name for name in names if _PART.fullmatch(name)]
    if SUMMARY in names and not force:
        raise CauserieError(
            f"{folder.path} has a finished run already: name another folder, or overwrite it with "
            "--force"
        )
    if SUMMARY in names:
        for name in (SUMMARY, *parts):
            folder.remove(name)
        return 0
    if strange := [n for n in names if not (_PART.fullmatch(n) or _LEFT.fullmatch(n))]:
        raise CauserieError(
            f"{folder.path} has {strange[0]}, which no run of causerie writes: name a new folder"
        )
    return len(parts)


def finish(job: Job, names: Sequence[str], inputs: Sequence[str]) -> tuple[Summary, list[Any]]:
    """Put together what the parts hold, in order: the summary, which is written, and conversations.

    What does not belong to the run is removed from its folder.
    """
    folder, layout = job.folder, job.layout
    summary, shown = Summary.of(layout.plan), Shown(layout.explain)
    talks: list[Any] = []
    for name in names:
        about = read_part(folder, name)
        for talk in about["talks"]:
            moved = {**talk, "number": talk["number"] + summary.dialogues}
            if shown.take(moved):
                talks.append(moved)
        summary = summary.merge(Summary.from_json(about["summary"]))
    for name in {*folder.names()}.difference(names):
        if _PART.fullmatch(name) or _LEFT.fullmatch(name):
            folder.remove(name)
    content = {
        "causerie": job.version,
        "inputs": list(inputs),
        **layout.about(),
        "summary": summary.to_json(),
        "parts": list(names),
    }
    folder.write(SUMMARY, json.dumps(content, ensure_ascii=True, indent=1).encode())
    return summary, talks


def _good(chunk: Chunk, summary: Summary) -> Iterator[Dialogue | Exchange]:
    for record in chunk.records:
        if isinstance(record, Rejected):
            summary.reject()
        else:
            summary.see(record)
            yield record


def _dialogue(record: Dialogue | Exchange) -> Dialogue:
    return record.dialogue if isinstance(record, Exchange) else record
