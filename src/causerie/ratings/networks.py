"""The networks: bodies that turn dialogues into vectors, heads that rate them, and how they learn.

A target is a rating, whether it is low, or one of five classes.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from causerie.errors import CauserieError
from causerie.ratings.examples import Example, stratified_batches
from causerie.ratings.log import HIGHEST, LOW, LOWEST
from causerie.training.corpus import EpochBatches
from causerie.training.encoders import Vectors
from causerie.training.loop import Task

if TYPE_CHECKING:
    from causerie.ratings.models import Neural

ENCODER_RATE = 0.01
"""Learning rate of the encoder where it is tuned, as a share of the others'."""


class Target(ABC):
    """What a network's outputs predict, and what a wrong prediction costs."""

    name: ClassVar[str]
    outputs: ClassVar[int]

    @abstractmethod
    def start(self, ratings: Tensor) -> Tensor:
        """The outputs that say what is so on average, where a network starts from."""

    @abstractmethod
    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        """Mean over the rows."""

    @abstractmethod
    def prediction(self, outputs: Tensor) -> Tensor:
        """One number per row."""


class Regression(Target):
    """The rating itself, by mean squared error."""

    name = "rating"
    outputs = 1

    def start(self, ratings: Tensor) -> Tensor:
        return ratings.mean().unsqueeze(0)

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        return functional.mse_loss(outputs[:, 0], ratings)

    def prediction(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0].clamp(LOWEST, HIGHEST)


class Binary(Target):
    """The probability that the rating is low."""

    name = "low"
    outputs = 1

    def start(self, ratings: Tensor) -> Tensor:
        low = int((ratings < LOW).sum())
        return torch.tensor([(low + 0.5) / (len(ratings) + 1)]).logit()

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        low = (ratings < LOW).to(outputs.dtype)
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], low)

    def prediction(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs[:, 0])


class FiveClass(Target):
    """The likeliest class, 1 to 5."""

    name = "class"
    outputs = 5

    def start(self, ratings: Tensor) -> Tensor:
        counts = self._classes(ratings).bincount(minlength=self.outputs) + 0.5
        return (counts / counts.sum()).log()

    def loss(self, outputs: Tensor, ratings: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, self._classes(ratings))

    def prediction(self, outputs: Tensor) -> Tensor:
        return (outputs.argmax(1) + 1).to(outputs.dtype)

    def _classes(self, ratings: Tensor) -> Tensor:
        return (ratings + 0.5).floor().clamp(LOWEST, HIGHEST).long() - 1


TARGETS: dict[str, Target] = {one.name: one for one in (Regression(), Binary(), FiveClass())}


def target(name: str) -> Target:
    if name not in TARGETS:
        raise CauserieError(f"unknown target {name!r}: use {', '.join(TARGETS)}")
    return TARGETS[name]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some examples as tensors."""

    features: Tensor
    """(rows, pairs, features), padded at the end."""
    lengths: Tensor
    """Pairs of each dialogue; packing wants them on the CPU."""
    summaries: Tensor
    treatments: Tensor
    ratings: Tensor
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        features = [torch.from_numpy(one.features) for one in examples]
        return cls(
            pad_sequence(features, batch_first=True).to(device),
            torch.tensor([one.pairs for one in examples]),
            torch.from_numpy(np.stack([one.summary for one in examples])).to(device),
            torch.tensor([one.treatment for one in examples], device=device),
            torch.tensor([one.rating for one in examples], dtype=torch.float32, device=device),
            tuple(one.texts for one in examples),
        )


class Body(nn.Module):
    """Turns a batch of dialogues into vectors."""

    width: int
    """Width of the vectors."""


class Summarised(Body):
    """The dialogue-level MLP: fixed values of the sequence of pairs (section 3.2)."""

    def __init__(self, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(
            nn.Linear(4 * features + 2, width), nn.ReLU(), nn.Dropout(dropout)
        )

    def forward(self, batch: Batch) -> Tensor:
        hidden: Tensor = self.layers(batch.summaries)
        return hidden


class Recurrent(Body):
    """The dialogue-level LSTM: its state after the last pair is the representation Φ."""

    def __init__(self, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.lstm = nn.LSTM(features, width, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        packed = pack_padded_sequence(
            batch.features, batch.lengths, batch_first=True, enforce_sorted=False
        )
        _, (state, _) = self.lstm(packed)
        hidden: Tensor = self.dropout(state[-1])
        return hidden


class TextBody(Body):
    """The end-to-end transformer: the text, as far as it fits the encoder's window."""

    def __init__(
        self,
        vectors: Vectors,
        dimension: int,
        width: int,
        dropout: float,
        encoder: nn.Module | None = None,
    ) -> None:
        """`encoder` makes the vectors, where it is to be trained too."""
        super().__init__()
        self.width = width
        self._vectors = vectors
        self.encoder = encoder
        self.layers = nn.Sequential(nn.Linear(dimension, width), nn.ReLU(), nn.Dropout(dropout))

    def forward(self, batch: Batch) -> Tensor:
        vectors = self._vectors([(texts,) for texts in batch.texts])
        hidden: Tensor = self.layers(vectors.to(next(self.layers.parameters())))
        return hidden


class Outcomes(nn.Module):
    """A body with one head per treatment; a model without treatments has one head."""

    start: Tensor
    """What heads add to: set to what is so on average, so that a network learns differences."""

    def __init__(self, body: Body, heads: int, width: int, outputs: int) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("start", torch.zeros(outputs))
        self.heads = nn.ModuleList(head(body.width, width, outputs) for _ in range(heads))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Representations Φ, and outcomes under every treatment: (rows, heads, outputs)."""
        phi: Tensor = self.body(batch)
        return phi, self.start + torch.stack([one(phi) for one in self.heads], dim=1)


def head(inputs: int, width: int, outputs: int) -> nn.Module:
    """An MLP regressor h_t."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


def factual(outcomes: Tensor, treatments: Tensor) -> Tensor:
    """Each row's outcome under the treatment that it had."""
    if outcomes.shape[1] == 1:
        return outcomes[:, 0]
    return outcomes[torch.arange(len(outcomes), device=outcomes.device), treatments]


def loss(phi: Tensor, outcomes: Tensor, batch: Batch, target: Target, weight: float) -> Tensor:
    """Eq. 5: the error under every treatment, and how far apart their representations are."""
    if outcomes.shape[1] == 1:
        return target.loss(outcomes[:, 0], batch.ratings)
    present = [batch.treatments == t for t in range(outcomes.shape[1])]
    groups = [(t, rows) for t, rows in enumerate(present) if bool(rows.any())]
    total = torch.stack(
        [target.loss(outcomes[rows, t], batch.ratings[rows]) for t, rows in groups]
    ).sum()
    if weight:
        for (_, a), (_, b) in combinations(groups, 2):
            total = total + weight * wasserstein(phi[a], phi[b])
    return total


def wasserstein(a: Tensor, b: Tensor) -> Tensor:
    """The Wasserstein distance of two samples, every row of the same weight: exact transport.

    Its gradient goes through the cost of the optimal plan.
    """
    import ot

    cost = torch.cdist(a.double(), b.double())
    weights = [cost.new_full((len(x),), 1 / len(x)) for x in (a, b)]
    distance: Tensor = ot.emd2(*weights, cost)
    return distance.to(a.dtype)


class Fitting(Task):
    """Eq. 5 on batches in which every treatment is present."""

    def __init__(self, model: Neural, train: Sequence[Example], held: Sequence[Example]) -> None:
        self.model, self.module = model, model.network
        self._train, self._held = train, held
        self.batches = EpochBatches(len(train) // model.config.batch, 1, self._drawn)

    def _drawn(self, epoch: int) -> list[list[Example]]:
        rng = random.Random(f"{self.model.config.seed}/{epoch}")
        return stratified_batches(self._train, len(self.batches), rng)

    def rate(self, name: str) -> float:
        return ENCODER_RATE if name.startswith("body.encoder.") else 1.0

    def batch(self, index: int) -> Batch:
        (examples,) = self.batches[index]
        return Batch.of(examples, self.model.device)

    def loss(self, batch: Batch) -> Tensor:
        phi, outcomes = self.module(batch)
        config = self.model.config
        return loss(phi, outcomes, batch, self.model.target, config.wasserstein)

    def validate(self) -> dict[str, float]:
        return {"minus error": -self.model.error(self._held)}
