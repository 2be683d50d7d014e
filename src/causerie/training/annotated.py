"""Annotated exchanges to train and to measure with."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from causerie.dialogue import Dialogue
from causerie.errors import CauserieError
from causerie.io import Annotation, Rejected, read_annotations
from causerie.io.annotations import opening
from causerie.training.corpus import Corpus

HELD_OUT = 5
"""One conversation in so many is kept for validation when there is no file for it."""


@dataclass(frozen=True)
class AnnotatedCorpus:
    """Annotations by source file: responses from another would be told by style alone."""

    sources: tuple[tuple[Annotation, ...], ...]

    @classmethod
    def read(
        cls, paths: Sequence[Path], say: Callable[[str], None] = lambda text: None
    ) -> AnnotatedCorpus:
        """Every good annotation; bad records and spans that are in no turn are said."""
        sources = []
        for path in paths:
            found: list[Annotation] = []
            for record in read_annotations(path):
                if isinstance(record, Rejected):
                    say(f"skipped {record}")
                    continue
                for span in record.unmatched:
                    say(f"{path.name}: {record.exchange.dialogue.id}: in no turn: {span!r}")
                found.append(record)
            if not found:
                raise CauserieError(f"{path} has no annotated exchange")
            sources.append(tuple(found))
        return cls(tuple(sources))

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    @property
    def annotations(self) -> list[Annotation]:
        return [annotation for source in self.sources for annotation in source]

    @property
    def conversations(self) -> set[tuple[str, ...]]:
        return {annotation.conversation for annotation in self.annotations}

    @property
    def dialogues(self) -> Corpus:
        """Of every conversation as much as the longest of its exchanges shows."""
        return Corpus(tuple(tuple(_longest(source)) for source in self.sources))

    def split(self, seed: int) -> tuple[AnnotatedCorpus, AnnotatedCorpus]:
        """What to train on and what to hold out: whole conversations of each file."""
        held: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            if len(known) < HELD_OUT:
                raise CauserieError(
                    f"a file with {len(known)} conversations cannot spare some for validation: "
                    f"give --valid, or at least {HELD_OUT} conversations"
                )
            # negatives are of another conversation: one alone has none
            held.update(random.Random(seed).sample(known, max(2, len(known) // HELD_OUT)))
        return self.without(held), self.without(self.conversations - held)

    def part(self, share: float, seed: int) -> AnnotatedCorpus:
        """About that share of the annotations of each file: whole conversations, at least one."""
        kept: set[tuple[str, ...]] = set()
        for source in self.sources:
            known = sorted({annotation.conversation for annotation in source})
            random.Random(seed).shuffle(known)
            kept.update(known[: max(1, round(share * len(known)))])
        return self.without(self.conversations - kept)

    def apart_from(self, other: AnnotatedCorpus) -> AnnotatedCorpus:
        """The annotations of conversations that are not in the other, nor share an exchange."""
        free = self.dialogues.without(other.dialogues)
        kept = {opening(dialogue.turns) for dialogue in free.dialogues}
        return self.without(self.conversations - (kept - other.conversations))

    def without(self, conversations: Iterable[tuple[str, ...]]) -> AnnotatedCorpus:
        """The annotations of all other conversations."""
        left_out = set(conversations)
        return AnnotatedCorpus(
            tuple(
                tuple(one for one in source if one.conversation not in left_out)
                for source in self.sources
            )
        )

    @cached_property
    def sha256(self) -> str:
        """Of who says what and why, whatever the file format."""
        digest = hashlib.sha256()
        for source in self.sources:
            for one in source:
                for turn in (*one.exchange.context, one.exchange.response):
                    digest.update(f"{turn.speaker}\0{turn.text}\0".encode("utf-8", "replace"))
                digest.update(f"\1{sorted(one.causes)}".encode())
            digest.update(b"\2")
        return digest.hexdigest()


def _longest(source: Sequence[Annotation]) -> list[Dialogue]:
    found: dict[tuple[str, ...], Dialogue] = {}
    for annotation in source:
        dialogue = annotation.exchange.dialogue
        known = found.get(annotation.conversation)
        if known is None or len(known.turns) < len(dialogue.turns):
            found[annotation.conversation] = dialogue
    return list(found.values())
