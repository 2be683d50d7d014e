"""Training the feature extractor: tell the true response from others (sections 3.1 and 3.4)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from causerie.dialogue import Dialogue, Exchange
from causerie.engines.encoder import EncoderInput
from causerie.engines.texts import Texts
from causerie.errors import CauserieError
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import Cross, Extractor, Towers
from causerie.metrics.density.network import contrastive_loss, selection_loss
from causerie.stats import rank_of_true
from causerie.training.corpus import Batches, Corpus
from causerie.training.encoders import FixedVectors, LearnedVectors, Vectors
from causerie.training.loop import Task
from causerie.training.negatives import corrupt


@dataclass(frozen=True)
class Candidates:
    """Contexts with their candidates, the true response first in each row."""

    features: Tensor
    """(contexts, candidates, width)"""
    same: Tensor
    """(contexts, candidates): neither true nor false, such as one with the true one's text."""


class Selection(Task):
    """Response selection: eq. 1 plus lambda times eq. 4, on the features of a batch."""

    def __init__(
        self,
        extractor: Extractor,
        config: DensityConfig,
        train: Corpus,
        valid: Sequence[Sequence[Exchange]],
    ) -> None:
        if any(len(source) < 2 for source in train.sources):
            raise CauserieError("a file with one dialogue has no responses of others: leave it out")
        self.extractor, self.config, self.train = extractor, config, train
        self.encoder = extractor.encoder
        parts: dict[str, nn.Module] = {"head": extractor.head}
        if config.learns_encoder:
            parts = {"encoder": self.encoder.model, **parts}
        self.module = nn.ModuleDict(parts)
        kind = LearnedVectors if config.learns_encoder else FixedVectors
        self.encode: Vectors = kind(self.encoder, config.pooling)
        self.batches = Batches(train, config.batch, config.seed)
        self.valid = valid

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> tuple[list[Dialogue], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Dialogue], random.Random]) -> Tensor:
        # Dropout is the paper's, for its cross-encoder; two towers see each text once or twice.
        cross = self.config.interaction == "cross"
        self.encoder.model.train(cross and self.config.learns_encoder)
        candidates = self.candidates(*batch)
        features, same = candidates.features, candidates.same
        loss = selection_loss(self.extractor.head.logits(features), same)
        if self.config.contrastive:
            alike = contrastive_loss(features, same, self.config.temperature)
            loss = loss + self.config.contrastive * alike
        return loss

    def validate(self) -> dict[str, float]:
        self.encoder.forget()  # what it remembers is from other weights
        ranks = rank_of_true(self.extractor.selection(self.valid))
        return {"r@1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}

    @abstractmethod
    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Candidates:
        """What the dialogues of a batch give."""


class CrossSelection(Selection):
    """The paper's: an exchange of each dialogue, with random responses of the same source."""

    extractor: Cross

    @cached_property
    def _responses(self) -> dict[int, list[str]]:
        """By dialogue, all responses of its source."""
        responses: dict[int, list[str]] = {}
        for source in self.train.sources:
            texts = [turn.text for dialogue in source for turn in dialogue.turns[1:]]
            responses.update((id(dialogue), texts) for dialogue in source)
        return responses

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
    of them corrupted. Responses of the same dialogue are about the same things: left out."""

    extractor: Towers

    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Candidates:
        rows = [_in_a_row(dialogue, self.config.exchanges, rng) for dialogue in dialogues]
        exchanges = [exchange for row in rows for exchange in row]
        responses = [exchange.response.text for exchange in exchanges]
        corrupted = [
            corrupt(e.response.text, e.last(1)[0].text, _other(e, exchanges, rng), rng)
            for e in exchanges
            if rng.random() < self.config.attacks
        ]
        texts = Texts()
        contexts = texts.contexts(exchanges, self.config.history)
        answers = texts.places(responses + corrupted)
        vectors = texts.vectors(self.encode(texts.inputs))
        features = self.extractor.head.table(vectors[contexts], vectors[answers])
        same = _same(responses, responses + corrupted)
        owners = [str(number) for number, row in enumerate(rows) for _ in row]
        same[:, : len(owners)] |= _same(owners, owners)
        same = same.to(features.device)
        features, same = _diagonal_first(features), _diagonal_first(same)
        same[:, 0] = False
        return Candidates(features, same)


def _other(exchange: Exchange, exchanges: list[Exchange], rng: random.Random) -> str:
    """A response of another dialogue."""
    others = [e for e in exchanges if e.dialogue is not exchange.dialogue]
    return rng.choice(others or exchanges).response.text


def _in_a_row(dialogue: Dialogue, count: int, rng: random.Random) -> list[Exchange]:
    exchanges = dialogue.exchanges()
    start = rng.randrange(max(0, len(exchanges) - count) + 1)
    return exchanges[start : start + count]


def _same(rows: Sequence[str], columns: Sequence[str]) -> Tensor:
    """(rows, columns): which texts are equal."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys([*rows, *columns]))}
    row, column = (torch.tensor([numbers[text] for text in texts]) for texts in (rows, columns))
    return row[:, None] == column


def _diagonal_first(table: Tensor) -> Tensor:
    """(n, m, ...), m at least n, with the diagonal of each row moved to its front."""
    rows, columns = (torch.arange(n, device=table.device) for n in table.shape[:2])
    return table[rows[:, None], (rows[:, None] + columns) % len(columns)]


SELECTIONS: dict[str, type[Selection]] = {
    "cross": CrossSelection,
    "towers": TowersSelection,
    "cosine": TowersSelection,
}
