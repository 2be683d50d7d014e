"""What rating models see of a dialogue."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.treatments import NONE, of_dialogue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.features import Floats

HELD_OUT = 6
"""One example in so many says when to stop."""


@dataclass(frozen=True, eq=False)
class Example:
    """A dialogue as features of its turn pairs."""

    features: Floats
    """Z-scores, one row per pair."""
    treatments: NDArray[np.int64]
    """Of each pair."""
    texts: tuple[str, ...]
    """What was said, in order, one per pair: for the model that reads text."""
    rating: float = float("nan")
    """On the scale from 1 to 5; nan if unknown."""

    @property
    def treatment(self) -> int:
        return of_dialogue(self.treatments)

    @property
    def pairs(self) -> int:
        return len(self.features)

    @cached_property
    def summary(self) -> Floats:
        """Fixed length: average, first, penultimate and last pair, how many, how many signals."""
        rows = self.features
        penultimate = rows[-2] if len(rows) > 1 else rows[-1]
        signals = float((self.treatments != NONE).sum())
        counts = np.log1p(np.array([len(rows), signals], dtype=np.float32))
        return np.concatenate([rows.mean(0), rows[0], penultimate, rows[-1], counts])

    def cut(self, pairs: int) -> Example:
        """Its first pairs, with the same rating; what comes later is masked."""
        return replace(
            self,
            features=self.features[:pairs],
            treatments=self.treatments[:pairs],
            texts=self.texts[:pairs],
        )


def split(examples: Sequence[Example], seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Those to learn from, and those held out to say when to stop: some of every treatment."""
    shuffled = random.Random(seed).sample(list(examples), len(examples))
    order = sorted(shuffled, key=lambda one: one.treatment)
    held = order[HELD_OUT - 1 :: HELD_OUT]
    return [one for place, one in enumerate(order, start=1) if place % HELD_OUT], held


def masked(examples: Sequence[Example], seed: int = 0) -> list[Example]:
    """More dialogues to learn low ratings from (3.3.3): prefixes that end with a signal.

    The paper cuts the low-rated alone, which teaches that what is short, or ends with a signal,
    is low. Here dialogues of every rating are cut at their signals, and beside each prefix
    stands one of the same length of a dialogue drawn at random: prefixes of some kind are as
    often low as dialogues that begin so. There are at most two for each dialogue given.
    """
    rng = random.Random(seed)
    by_length = sorted(examples, key=lambda one: one.pairs)
    lengths = [one.pairs for one in by_length]
    signals = [
        (one, place + 1)
        for one in examples
        for place in np.flatnonzero(one.treatments[:-1] != NONE).tolist()
    ]
    made: list[Example] = []
    for one, pairs in rng.sample(signals, min(len(signals), len(examples))):
        longer = range(bisect_right(lengths, pairs), len(lengths))
        made += [one.cut(pairs), by_length[rng.choice(longer)].cut(pairs)]
    return made
