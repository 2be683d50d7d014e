"""Dialogues to train on, and negatives drawn from them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from causerie.dialogue import Dialogue
from causerie.errors import CauserieError
from causerie.io import read


@dataclass(frozen=True)
class Corpus:
    """Dialogues by source file: negatives from another source would be told by style alone."""

    sources: tuple[tuple[Dialogue, ...], ...]

    @classmethod
    def read(cls, paths: Sequence[Path], turns: int = 2) -> Corpus:
        """Every good dialogue with at least that many turns."""
        sources = []
        for path in paths:
            records = (r for r in read(path) if isinstance(r, Dialogue))
            dialogues = tuple(d for d in records if len(d.turns) >= turns)
            if not dialogues:
                raise CauserieError(f"{path} has no dialogue of at least {turns} turns")
            sources.append(dialogues)
        return cls(tuple(sources))

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def exchanges(self) -> int:
        return sum(len(d.turns) - 1 for source in self.sources for d in source)


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
            self._epoch, self._batches = epoch, self._shuffled(random.Random(self._seed + epoch))
        return self._batches[place]

    def _shuffled(self, rng: random.Random) -> list[list[Dialogue]]:
        batches = []
        for source in self._corpus.sources:
            order = rng.sample(source, len(source))
            last = max(1, len(order) // self._size)
            batches += [order[i * self._size : (i + 1) * self._size] for i in range(last)]
        rng.shuffle(batches)
        return batches
