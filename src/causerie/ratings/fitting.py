"""How networks of rating models are fitted: batches, the loss, and what they need at least."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from causerie.errors import CauserieError
from causerie.ratings.examples import Example
from causerie.ratings.networks import Batch, loss
from causerie.training.corpus import EpochBatches
from causerie.training.loop import Task

if TYPE_CHECKING:
    from causerie.ratings.models import Neural

LEAST = 8
"""Rated dialogues that a model can be fitted on."""
ENCODER_RATE = 0.01
"""Learning rate of the encoder where it is tuned, as a share of the others'."""


class Fitting(Task):
    """Eq. 5 on batches in which every treatment is present."""

    def __init__(self, model: Neural, train: Sequence[Example], held: Sequence[Example]) -> None:
        self.model, self.module = model, model.network
        self._train, self._held = train, held
        self.batches = EpochBatches(len(self._train) // model.config.batch, 1, self._dealt)

    def _dealt(self, epoch: int) -> list[list[Example]]:
        rng = random.Random(f"{self.model.config.seed}/{epoch}")
        return deal(self._train, len(self.batches), rng)

    def rate(self, name: str) -> float:
        return ENCODER_RATE if name.startswith("body.encoder.") else 1.0

    def batch(self, index: int) -> Batch:
        (examples,) = self.batches[index]
        return Batch.of(examples)

    def loss(self, batch: Batch) -> Tensor:
        phi, outcomes = self.module(batch)
        config = self.model.config
        return loss(phi, outcomes, batch, self.model.target, config.wasserstein)

    def validate(self) -> dict[str, float]:
        return {"minus error": -self.model.error(self._held)}


def deal(examples: Sequence[Example], batches: int, rng: random.Random) -> list[list[Example]]:
    """Batches of about one size that have their share of every treatment, and never none of it."""
    hands: list[list[Example]] = [[] for _ in range(batches)]
    dealt = 0
    for treatment in sorted({one.treatment for one in examples}):
        group = [one for one in examples if one.treatment == treatment]
        for one in rng.sample(group, len(group)):
            hands[dealt % batches].append(one)
            dealt += 1
        for hand in hands:
            if all(one.treatment != treatment for one in hand):
                hand.append(rng.choice(group))
    return hands


def check_examples(train: Sequence[Example], held: Sequence[Example]) -> None:
    examples = [*train, *held]
    if len(examples) < LEAST:
        raise CauserieError(f"{len(examples)} rated dialogues are too few: give at least {LEAST}")
    if any(math.isnan(one.rating) for one in examples):
        raise CauserieError("a model learns from rated dialogues only: leave out the others")


def check_treatments(examples: Sequence[Example], count: int) -> None:
    """A head without an example would predict at random."""
    absent = sorted(set(range(count)) - {one.treatment for one in examples})
    if absent:
        what = f"a signal of treatment {absent[0]} fired" if absent[0] else "no signal fired"
        raise CauserieError(
            f"there is no dialogue to learn from in which {what}: give more dialogues, or fit a "
            "model that tells no treatments apart, such as lstm"
        )
