"""The networks of rating models: bodies that encode dialogues, heads that rate, and the loss."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from causerie.ratings.examples import Example, stratified_batches
from causerie.training.corpus import EpochBatches
from causerie.training.encoders import Vectors
from causerie.training.loop import Task

if TYPE_CHECKING:
    from causerie.ratings.models import Neural

ENCODER_RATE = 0.01
"""Learning rate of a tuned encoder, as a share of that of all other weights."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some examples as tensors."""

    features: Tensor
    """(rows, pairs, features), padded at the end."""
    lengths: Tensor
    """Number of pairs of each dialogue; packing needs them on the CPU."""
    summaries: Tensor
    treatments: Tensor
    ratings: Tensor
    running: Tensor
    """(rows, 1): 1 if the dialogue is still running, 0 if it is over."""
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
            torch.tensor([[float(one.running)] for one in examples], device=device),
            tuple(one.texts for one in examples),
        )


class Body(nn.Module):
    """Turns a batch of dialogues into vectors."""

    width: int
    """Width of the vectors."""


class Summarised(Body):
    """The dialogue-level MLP on summary values of the pairs (section 3.2)."""

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
    """The end-to-end transformer on the text that fits the encoder's window."""

    def __init__(
        self,
        vectors: Vectors,
        dimension: int,
        width: int,
        dropout: float,
        encoder: nn.Module | None = None,
    ) -> None:
        """`encoder` is the network that computes the vectors, if it is to be trained, too."""
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
    """A body with one head per treatment; a model without treatments has one head.

    Heads also see whether the dialogue is still running: if short dialogues are rated lower, the
    beginning of a long one must not be mistaken for a short one.
    """

    start: Tensor
    """Offset of all heads, set to the average rating, so that the network learns differences."""

    def __init__(self, body: Body, heads: int, width: int) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("start", torch.zeros(()))
        self.heads = nn.ModuleList(head(body.width + 1, width) for _ in range(heads))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return representations Φ and ratings under every treatment: (rows, heads)."""
        phi: Tensor = self.body(batch)
        seen = torch.cat([phi, batch.running.to(phi)], dim=1)
        return phi, self.start + torch.cat([one(seen) for one in self.heads], dim=1)


def head(inputs: int, width: int) -> nn.Module:
    """Return an MLP regressor h_t."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 1))


def factual(outcomes: Tensor, treatments: Tensor) -> Tensor:
    """Return each row's outcome under its own treatment."""
    if outcomes.shape[1] == 1:
        return outcomes[:, 0]
    return outcomes[torch.arange(len(outcomes), device=outcomes.device), treatments]


def loss(phi: Tensor, outcomes: Tensor, batch: Batch, weight: float) -> Tensor:
    """Return eq. 5: the error under every treatment plus distances of the representations."""
    if outcomes.shape[1] == 1:
        return functional.mse_loss(outcomes[:, 0], batch.ratings)
    present = [batch.treatments == t for t in range(outcomes.shape[1])]
    groups = [(t, rows) for t, rows in enumerate(present) if bool(rows.any())]
    total = torch.stack(
        [functional.mse_loss(outcomes[rows, t], batch.ratings[rows]) for t, rows in groups]
    ).sum()
    if weight:
        for (_, a), (_, b) in combinations(groups, 2):
            total = total + weight * wasserstein(phi[a], phi[b])
    return total


def wasserstein(a: Tensor, b: Tensor) -> Tensor:
    """Return the exact Wasserstein distance of two samples with equal weights.

    The gradient flows through the cost of the optimal transport plan.
    """
    import ot

    cost = torch.cdist(a.double(), b.double())
    weights = [cost.new_full((len(x),), 1 / len(x)) for x in (a, b)]
    distance: Tensor = ot.emd2(*weights, cost)
    return distance.to(a.dtype)


class Fitting(Task):
    """Minimises eq. 5 on batches in which every treatment is present."""

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
        return self.model.batch(examples)

    def loss(self, batch: Batch) -> Tensor:
        phi, outcomes = self.module(batch)
        config = self.model.config
        return loss(phi, outcomes, batch, config.wasserstein)

    def validate(self) -> dict[str, float]:
        return {"minus error": -self.model.error(self._held)}
