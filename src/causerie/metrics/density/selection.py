"""Training the feature extractor: tell the true response from others (sections 3.1 and 3.4)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from causerie.dialogue import Dialogue, Exchange
from causerie.engines.encoder import EncoderInput
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import Cross, Extractor, Towers
from causerie.metrics.density.losses import contrastive_loss, selection_loss
from causerie.training.attacks import corrupt
from causerie.training.corpus import Batches, Corpus
from causerie.training.loop import Task
from causerie.training.vectors import FixedVectors, LearnedVectors, Vectors

REFINED_EXCHANGES = 3
"""Of each dialogue, on which the small network is refined."""


@dataclass(frozen=True)
class Candidates:
    """Contexts with their candidates, the true response first in each row."""

    features: Tensor
    """(contexts, candidates, width)"""
    same: Tensor
    """(contexts, candidates): has the text of the true response without being it."""


class Selection(Task):
    """Response selection: eq. 1 plus lambda times eq. 4, on the features of a batch."""

    def __init__(
        self,
        extractor: Extractor,
        config: DensityConfig,
        train: Corpus,
        valid: Sequence[Sequence[Exchange]],
    ) -> None:
        self.extractor, self.config = extractor, config
        self.encoder = extractor.encoder
        self.module = nn.ModuleDict({"encoder": self.encoder.model, "head": extractor.head})
        self.encode: Vectors = LearnedVectors(self.encoder, config.pooling)
        self.batches = Batches(train, config.batch, config.seed)
        self.valid = valid

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> tuple[list[Dialogue], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Dialogue], random.Random]) -> Tensor:
        # Dropout is the paper's for its full tuning; an adapter sees each text a few times.
        self.encoder.model.train(self.config.tuning == "full")
        candidates = self.candidates(*batch)
        features, same = candidates.features, candidates.same
        loss = selection_loss(self.extractor.head.logits(features), same)
        if self.config.contrastive:
            alike = contrastive_loss(features, same, self.config.temperature)
            loss = loss + self.config.contrastive * alike
        return loss

    def validate(self) -> dict[str, float]:
        self.encoder.forget()  # what it remembers is from other weights
        return ranking_scores(self.extractor.true_ranks(self.valid))

    @abstractmethod
    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Candidates:
        """What the dialogues of a batch give."""


class CrossSelection(Selection):
    """The paper's: an exchange of each dialogue, with random responses of the same source."""

    extractor: Cross

    def __init__(
        self,
        extractor: Extractor,
        config: DensityConfig,
        train: Corpus,
        valid: Sequence[Sequence[Exchange]],
    ) -> None:
        super().__init__(extractor, config, train, valid)
        self._responses: dict[int, list[str]] = {}
        for source in train.sources:
            texts = [turn.text for dialogue in source for turn in dialogue.turns[1:]]
            self._responses.update((id(dialogue), texts) for dialogue in source)

    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Candidates:
        inputs: list[EncoderInput] = []
        same: list[list[bool]] = []
        for dialogue in dialogues:
            exchange = Exchange(dialogue, rng.randrange(1, len(dialogue.turns)))
            context, (true,) = self.extractor.input(exchange)
            negatives = self._negatives(exchange, rng)
            inputs += [(context, (response,)) for response in (true, *negatives)]
            same.append([False, *(response == true for response in negatives)])
        features = self.encode(inputs)
        features = features.view(len(dialogues), -1, features.shape[-1])
        return Candidates(features, torch.tensor(same, device=features.device))

    def _negatives(self, exchange: Exchange, rng: random.Random) -> list[str]:
        texts = self._responses[id(exchange.dialogue)]
        drawn = rng.choices(texts, k=self.config.negatives)
        if rng.random() < self.config.attacks:
            last = exchange.last(1)[0].text
            drawn[-1] = corrupt(exchange.response.text, last, drawn[-1], rng)
        return drawn


class TowersSelection(Selection):
    """Some exchanges of each dialogue; the candidates are all responses of the batch, and some
    of them corrupted."""

    extractor: Towers

    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Candidates:
        read = self.extractor
        exchanges = [e for dialogue in dialogues for e in self.exchanges(dialogue, rng)]
        responses = [exchange.response.text for exchange in exchanges]
        corrupted = [
            corrupt(exchange.response.text, exchange.last(1)[0].text, rng.choice(responses), rng)
            for exchange in exchanges
            if rng.random() < self.config.attacks
        ]
        vectors = self.encode(
            [read.context(exchange) for exchange in exchanges]
            + [read.last(exchange) for exchange in exchanges]
            + [read.response(text) for text in responses + corrupted]
        )
        count = len(exchanges)
        contexts, lasts, answers = vectors[:count], vectors[count : 2 * count], vectors[2 * count :]
        features = read.head.features(contexts[:, None], lasts[:, None], answers)
        same = _same(responses, responses + corrupted).to(features.device)
        features, same = _diagonal_first(features), _diagonal_first(same)
        same[:, 0] = False
        return Candidates(features, same)

    def exchanges(self, dialogue: Dialogue, rng: random.Random) -> list[Exchange]:
        """Those that a step takes."""
        return _some(dialogue, self.config.exchanges, rng)


class Refinement(TowersSelection):
    """The small network alone: the encoder is fixed, so that every text is encoded once."""

    def __init__(
        self,
        extractor: Extractor,
        config: DensityConfig,
        train: Corpus,
        valid: Sequence[Sequence[Exchange]],
    ) -> None:
        super().__init__(extractor, config, train, valid)
        self.module = nn.ModuleDict({"head": extractor.head})
        self.encode = FixedVectors(self.encoder, config.pooling)

    def rate(self, name: str) -> float:
        return 1.0

    def exchanges(self, dialogue: Dialogue, rng: random.Random) -> list[Exchange]:
        # always the same of a dialogue, or there would be ever more to encode
        rng = random.Random(f"{self.config.seed}/{dialogue.id}")
        return _some(dialogue, REFINED_EXCHANGES, rng)

    def validate(self) -> dict[str, float]:
        return ranking_scores(self.extractor.true_ranks(self.valid))


def _some(dialogue: Dialogue, count: int, rng: random.Random) -> list[Exchange]:
    exchanges = dialogue.exchanges()
    return rng.sample(exchanges, min(count, len(exchanges)))


def _same(rows: Sequence[str], columns: Sequence[str]) -> Tensor:
    """(rows, columns): which texts are equal."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys([*rows, *columns]))}
    row, column = (torch.tensor([numbers[text] for text in texts]) for texts in (rows, columns))
    return row[:, None] == column


def _diagonal_first(table: Tensor) -> Tensor:
    """(n, m, ...), m at least n, with the diagonal of each row moved to its front."""
    rows, columns = (torch.arange(n, device=table.device) for n in table.shape[:2])
    return table[rows[:, None], (rows[:, None] + columns) % len(columns)]


def ranking_scores(ranks: NDArray[np.int_]) -> dict[str, float]:
    """R@1 and MRR of the ranks of true responses."""
    return {"r@1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}


SELECTIONS: dict[str, type[Selection]] = {
    "cross": CrossSelection,
    "towers": TowersSelection,
    "cosine": TowersSelection,
}
