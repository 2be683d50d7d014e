"""Dialogues to train on, and batches of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Rejected, read

HELD_OUT = 20
"""One dialogue in so many is kept for validation when there is no file for it."""


@dataclass(frozen=True)
class Corpus:
    """Dialogues by source file: negatives from another source would be told by style alone."""

    sources: tuple[tuple[Dialogue, ...], ...]

    @classmethod
    def read(
        cls,
        paths: Sequence[Path],
        rejected: Callable[[Rejected], None] = lambda record: None,
    ) -> Corpus:
        """Every good dialogue of at least two turns; bad records are handed to `rejected`."""
        sources = []
        for path in paths:
            dialogues = []
            for record in read(path):
                if isinstance(record, Rejected):
                    rejected(record)
                    continue
                dialogue = record.dialogue if isinstance(record, Exchange) else record
                if len(dialogue.turns) > 1:
                    dialogues.append(dialogue)
            if not dialogues:
                raise CauserieError(f"{path} has no dialogue of at least two turns to train on")
            sources.append(tuple(dialogues))
        return cls(tuple(sources))

    def split(self, seed: int) -> tuple[Corpus, Corpus]:
        """The dialogues to train on, and those held out."""
        kept, held = [], []
        for source in self.sources:
            if len(source) < 2:
                raise CauserieError("a file with one dialogue cannot be split: give --valid")
            order = random.Random(seed).sample(source, len(source))
            count = max(1, len(source) // HELD_OUT)
            held.append(tuple(order[:count]))
            kept.append(tuple(order[count:]))
        return Corpus(tuple(kept)), Corpus(tuple(held))

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    @property
    def dialogues(self) -> list[Dialogue]:
        return [dialogue for source in self.sources for dialogue in source]

    @property
    def exchanges(self) -> list[Exchange]:
        return [exchange for dialogue in self.dialogues for exchange in dialogue.exchanges()]

    @cached_property
    def sha256(self) -> str:
        """Of who says what, whatever the file format."""
        digest = hashlib.sha256()
        for dialogue in self.dialogues:
            for turn in dialogue.turns:
                digest.update(f"{turn.speaker}\0{turn.text}\0".encode("utf-8", "replace"))
            digest.update(b"\1")
        return digest.hexdigest()


class Batches:
    """Batches of distinct dialogues, each of one source; every epoch in an order of its own."""

    def __init__(self, corpus: Corpus, size: int, seed: int) -> None:
        self._corpus, self._size, self._seed = corpus, size, seed
        self._epoch: int | None = None
        self._batches: list[list[Dialogue]] = []

    def __len__(self) -> int:
        """Batches in an epoch."""
        return sum(max(1, len(source) // self._size) for source in self._corpus.sources)

    def __getitem__(self, index: int) -> list[Dialogue]:
        """Batch number `index`, counted on through the epochs."""
        epoch, place = divmod(index, len(self))
        if epoch != self._epoch:
            self._epoch = epoch
            self._batches = self._shuffled(random.Random(f"{self._seed}/{epoch}"))
        return self._batches[place]

    def _shuffled(self, rng: random.Random) -> list[list[Dialogue]]:
        batches = []
        for source in self._corpus.sources:
            order = rng.sample(source, len(source))
            last = max(1, len(order) // self._size)
            batches += [order[i * self._size : (i + 1) * self._size] for i in range(last)]
        rng.shuffle(batches)
        return batches
