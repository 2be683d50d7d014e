"""Training the feature extractor by response selection (sections 3.1 and 3.4)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
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
from causerie.training.negatives import (
    COMPARED,
    NEAREST,
    POOL,
    clusters_of,
    corrupt,
    neighbourhoods,
    unit_vectors,
)

Row: TypeAlias = list[Exchange]
"""Consecutive exchanges of one dialogue."""


@dataclass(frozen=True)
class Candidates:
    """Contexts with their candidates, the true response first in each row."""

    features: Tensor
    """(contexts, candidates, width)"""
    same: Tensor
    """(contexts, candidates): neither true nor false, such as a copy of the true response."""


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
            raise CauserieError("a file with a single dialogue has no negatives: omit it")
        self.extractor, self.config, self.train = extractor, config, train
        self.encoder = extractor.encoder
        parts: dict[str, nn.Module] = {"head": extractor.head}
        if config.learns_encoder:
            parts = {"encoder": self.encoder.model, **parts}
        self.module = nn.ModuleDict(parts)
        kind = LearnedVectors if config.learns_encoder else FixedVectors
        self.encode: Vectors = kind(self.encoder, config.pooling)
        count = 1 if config.interaction == "cross" else config.exchanges
        self.rows = [
            [row for d in source for row in in_a_row(d, count)] for source in train.sources
        ]
        self.batches = Batches(self.rows, config.batch, config.seed, order=self.near())
        self.valid = valid

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> tuple[list[Row], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Row], random.Random]) -> Tensor:
        # Only the paper's cross-encoder has dropout; two towers see each text once or twice.
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
        self.encoder.forget()  # its cache belongs to older weights
        ranks = rank_of_true(self.extractor.selection(self.valid))
        return {"r@1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}

    def near(self) -> Callable[[int, random.Random], list[int]] | None:
        """Return the order that decides which rows share a batch; None for random."""
        return None

    @abstractmethod
    def candidates(self, rows: list[Row], rng: random.Random) -> Candidates:
        """Return the candidates of a batch."""

    def corrupted(self, exchange: Exchange) -> str | None:
        """Return a corrupted true response for some exchanges, the same in every epoch.

        An encoder that is not trained then needs to encode it only once.
        """
        rng = random.Random(f"{self.config.seed}/{exchange.dialogue.id}/{exchange.turn}")
        if rng.random() >= self.config.attacks:
            return None
        other = rng.choice(self._responses[id(exchange.dialogue)])
        return corrupt(exchange.response.text, exchange.last(1)[0].text, other, rng)

    @cached_property
    def _responses(self) -> dict[int, list[str]]:
        """All responses of the source of each dialogue, by `id()` of the dialogue."""
        responses: dict[int, list[str]] = {}
        for source in self.train.sources:
            texts = [turn.text for dialogue in source for turn in dialogue.turns[1:]]
            responses.update((id(dialogue), texts) for dialogue in source)
        return responses


class CrossSelection(Selection):
    """The paper's selection: one exchange at a time, with random responses of its source."""

    extractor: Cross

    def __init__(
        self,
        extractor: Extractor,
        config: DensityConfig,
        train: Corpus,
        valid: Sequence[Sequence[Exchange]],
    ) -> None:
        super().__init__(extractor, config, train, valid)
        # The encoder before training or resuming: nearest responses must not change.
        self._start = self.encoder.as_now() if config.mined else self.encoder

    def candidates(self, rows: list[Row], rng: random.Random) -> Candidates:
        inputs: list[EncoderInput] = []
        same: list[list[bool]] = []
        for (exchange,) in rows:
            context, (true,) = self.extractor.input(exchange)
            negatives = self._negatives(exchange, rng)
            inputs += [(context, (response,)) for response in (true, *negatives)]
            same.append([False, *(response == true for response in negatives)])
        features = self.encode(inputs)
        features = features.view(len(rows), -1, features.shape[-1])
        return Candidates(features, torch.tensor(same, device=features.device))

    def _negatives(self, exchange: Exchange, rng: random.Random) -> list[str]:
        drawn = rng.choices(self._responses[id(exchange.dialogue)], k=self.config.negatives)
        if count := round(self.config.mined * len(drawn)):
            drawn[-count:] = self._near_responses(exchange, count, rng)
        if self.config.said:  # the last turn half of the time
            drawn[0] = rng.choice((exchange.last(1)[0], rng.choice(exchange.context))).text
        if corrupted := self.corrupted(exchange):
            drawn[-1] = corrupted
        return drawn

    def _near_responses(self, exchange: Exchange, count: int, rng: random.Random) -> list[str]:
        """Return some of the responses nearest to the true one among many drawn at random."""
        texts, vectors = self._pools[id(exchange.dialogue)]
        true = unit_vectors(self._start, [exchange.response.text], self.config.pooling)[0]
        drawn = np.array(rng.sample(range(len(texts)), min(COMPARED, len(texts))))
        nearest = drawn[np.argsort(-(vectors[drawn] @ true), kind="stable")[: NEAREST * count]]
        return rng.choices([texts[place] for place in nearest], k=count)

    @cached_property
    def _pools(self) -> dict[int, tuple[list[str], NDArray[np.float32]]]:
        """Responses of the source of each dialogue with their unit vectors, by `id()`."""
        pools: dict[int, tuple[list[str], NDArray[np.float32]]] = {}
        for source in self.train.sources:
            known = self._responses[id(source[0])]
            texts = random.Random(self.config.seed).sample(known, min(POOL, len(known)))
            pool = texts, unit_vectors(self._start, texts, self.config.pooling)
            pools.update((id(dialogue), pool) for dialogue in source)
        return pools


class TowersSelection(Selection):
    """Consecutive exchanges of several dialogues, all of whose responses are candidates.

    Later responses of the same dialogue are on the same topic, so they are neither true nor
    false. Earlier turns are left out, too, or count as false if `said`: repeating is no answer.
    """

    extractor: Towers

    def near(self) -> Callable[[int, random.Random], list[int]] | None:
        """Put rows on similar topics into one batch, a share of `mined` at a time.

        The response in the middle of a row stands for its topic.
        """
        together = round(self.config.mined * self.config.batch)
        if together < 2:
            return None
        vectors = []
        for source in self.rows:
            middles = [row[len(row) // 2].response.text for row in source]
            vectors.append(unit_vectors(self.encoder, middles, self.config.pooling))
        self.encoder.forget()

        def order(source: int, rng: random.Random) -> list[int]:
            draws = np.random.default_rng(rng.getrandbits(64))
            groups = neighbourhoods(vectors[source], together, draws)
            rng.shuffle(groups)
            return [int(place) for group in groups for place in group]

        return order

    def candidates(self, rows: list[Row], rng: random.Random) -> Candidates:
        exchanges = [exchange for row in rows for exchange in row]
        turns = list(exchanges)
        if self.config.said:  # the turns before the rows are responses of earlier exchanges
            turns += [Exchange(row[0].dialogue, row[0].turn - 1) for row in rows]
        corrupted = [text for text in map(self.corrupted, exchanges) if text]
        texts = Texts()
        contexts = texts.contexts(exchanges, self.config.history)
        answers = texts.places([*(turn.response.text for turn in turns), *corrupted])
        vectors = texts.vectors(self.encode(texts.inputs))
        features = self.extractor.head.table(vectors[contexts], vectors[answers])
        count = len(exchanges)
        same = answers[:count, None] == answers
        same[:, : len(turns)] |= self._left_out(turns)[:count]
        same = same.to(features.device)
        features, same = _diagonal_first(features), _diagonal_first(same)
        same[:, 0] = False
        return Candidates(features, same)

    def _left_out(self, turns: list[Exchange]) -> Tensor:
        """Return (turns, turns): which responses are neither true nor false for each exchange."""
        owners = torch.tensor(clusters_of(turns))
        places = torch.tensor([turn.turn for turn in turns])
        together = owners[:, None] == owners
        return together & (places[:, None] <= places) if self.config.said else together


def in_a_row(dialogue: Dialogue, count: int) -> list[Row]:
    """Return all exchanges of a dialogue in rows of at most `count`."""
    exchanges = dialogue.exchanges()
    return [exchanges[start : start + count] for start in range(0, len(exchanges), count)]


def _diagonal_first(table: Tensor) -> Tensor:
    """Move the diagonal of a table (n, m, ...), m at least n, to the front of each row."""
    rows, columns = (torch.arange(n, device=table.device) for n in table.shape[:2])
    return table[rows[:, None], (rows[:, None] + columns) % len(columns)]


SELECTIONS: dict[str, type[Selection]] = {
    "cross": CrossSelection,
    "towers": TowersSelection,
    "views": TowersSelection,
    "cosine": TowersSelection,
}
