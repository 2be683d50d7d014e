"""What rating models see of a dialogue."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from causerie.ratings.scale import is_low
from causerie.ratings.treatments import NONE, of_dialogue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.ratings.features import Floats


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


def masked(examples: Sequence[Example], seed: int = 0) -> list[Example]:
    """More low-rated dialogues (3.3.3): prefixes of the low-rated that end with a signal.

    With as many prefixes of well-rated dialogues of the same lengths beside them, or else a
    model would learn that what is short is low.
    """
    rng = random.Random(seed)
    prefixes = [
        one.cut(place + 1)
        for one in examples
        if is_low(one.rating)
        for place in np.flatnonzero(one.treatments != NONE).tolist()
        if place + 1 < one.pairs
    ]
    well = [one for one in examples if not is_low(one.rating)]
    made: list[Example] = []
    for prefix in prefixes:
        longer = [one for one in well if one.pairs > prefix.pairs]
        if longer:
            made += [prefix, rng.choice(longer).cut(prefix.pairs)]
    return made
