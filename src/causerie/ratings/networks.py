"""The networks: bodies that turn dialogues into vectors, and heads that rate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from causerie.ratings.examples import Example
from causerie.ratings.targets import Target
from causerie.training.encoders import Vectors


@dataclass(frozen=True, eq=False)
class Batch:
    """Some examples as tensors."""

    features: Tensor
    """(rows, pairs, features), padded at the end."""
    lengths: Tensor
    summaries: Tensor
    treatments: Tensor
    ratings: Tensor
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Batch:
        return cls(
            pad_sequence([torch.from_numpy(one.features) for one in examples], batch_first=True),
            torch.tensor([one.pairs for one in examples]),
            torch.from_numpy(np.stack([one.summary for one in examples])),
            torch.tensor([one.treatment for one in examples]),
            torch.tensor([one.rating for one in examples], dtype=torch.float32),
            tuple(one.texts for one in examples),
        )


class Body(nn.Module):
    """Turns a batch of dialogues into vectors."""

    width: int
    """Of the vectors."""


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


class Read(Body):
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
        hidden: Tensor = self.layers(self._vectors([(texts,) for texts in batch.texts]))
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
    return outcomes[torch.arange(len(outcomes)), treatments]


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
    weights = [torch.full((len(x),), 1 / len(x), dtype=cost.dtype) for x in (a, b)]
    distance: Tensor = ot.emd2(*weights, cost)
    return distance.to(a.dtype)
