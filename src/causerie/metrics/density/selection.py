"""Training the feature extractor: tell the true response from others (section 3.1 and 3.4)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines.encoder import EncoderInput, pool
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.extractor import Cross, Extractor, Towers, align
from causerie.metrics.density.losses import contrastive_loss, selection_loss
from causerie.training.attacks import corrupt
from causerie.training.corpus import Batches, Corpus
from causerie.training.loop import Task

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder

CANDIDATES = 16
"""Of which one is true, in validation."""


class Selection(Task):
    """Response selection: eq. 1 plus lambda times eq. 4, on the features of a batch."""

    def __init__(
        self, extractor: Extractor, config: DensityConfig, train: Corpus, valid: Sequence[Exchange]
    ) -> None:
        self.extractor, self.config = extractor, config
        self.encoder: Encoder = extractor.encoder
        self.module = nn.ModuleDict({"encoder": self.encoder.model, "head": extractor.head})
        self.batches = Batches(train, config.batch, config.seed)
        self.valid = ranking_items(valid, config.seed)

    def batch(self, index: int) -> tuple[list[Dialogue], random.Random]:
        return self.batches[index], random.Random(f"{self.config.seed}/{index}")

    def loss(self, batch: tuple[list[Dialogue], random.Random]) -> Tensor:
        features = self.candidates(*batch)
        loss = selection_loss(self.extractor.head.logits(features))
        if self.config.contrastive:
            alike = contrastive_loss(features, self.config.temperature)
            loss = loss + self.config.contrastive * alike
        return loss

    def validate(self) -> dict[str, float]:
        self.encoder.forget()  # what it remembers is from other weights
        ranks = true_ranks(self.extractor, self.valid)
        return {"r@1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}

    @abstractmethod
    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Tensor:
        """(contexts, candidates, width): features, the true response first in each row."""

    def encode(self, inputs: list[EncoderInput]) -> Tensor:
        """Vectors of the inputs with gradients, similar lengths together."""
        rows = self.encoder.input.rows(inputs)
        order = np.argsort([len(row) for row in rows], kind="stable")
        parts = []
        for places in np.array_split(order, max(1, len(order) // 32)):
            batch = self.encoder.input.collate([rows[i] for i in places])
            hidden = self.encoder.forward(batch)
            parts.append(pool(hidden, batch["attention_mask"], self.config.pooling))
        back = torch.from_numpy(np.argsort(order, kind="stable"))
        return torch.cat(parts)[back]


class CrossSelection(Selection):
    """The paper's: one exchange of each dialogue, with random responses of the others."""

    extractor: Cross

    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Tensor:
        window = self.encoder.input.window
        inputs: list[EncoderInput] = []
        for dialogue in dialogues:
            exchange = Exchange(dialogue, rng.randrange(1, len(dialogue.turns)))
            context = tuple(turn.text for turn in exchange.last(window))
            inputs += [(context, (r,)) for r in self._responses(exchange, dialogues, rng)]
        return self.encode(inputs).unflatten(0, (len(dialogues), -1))

    def _responses(
        self, exchange: Exchange, dialogues: list[Dialogue], rng: random.Random
    ) -> list[str]:
        others = [d for d in dialogues if d is not exchange.dialogue] or dialogues
        drawn = [rng.choice(rng.choice(others).turns).text for _ in range(self.config.negatives)]
        true = exchange.response.text
        if self.config.attacks:
            drawn.append(corrupt(true, exchange.last(1)[0].text, drawn[0], rng))
        return [true, *drawn]


class TowersSelection(Selection):
    """Every exchange of the dialogues; the candidates are all responses of the batch."""

    extractor: Towers

    def candidates(self, dialogues: list[Dialogue], rng: random.Random) -> Tensor:
        head = self.extractor.head
        texts = [turn.text for dialogue in dialogues for turn in dialogue.turns]
        contexts: list[range] = []
        responses: list[int] = []
        for dialogue in dialogues:
            first = responses[-1] + 1 if responses else 0
            for response in range(first + 1, first + len(dialogue.turns)):
                contexts.append(range(first, response))
                responses.append(response)
        corrupted = []
        if self.config.attacks:
            for response in responses:
                other = texts[rng.choice(responses)]
                corrupted.append(corrupt(texts[response], texts[response - 1], other, rng))
        vectors = self.encode([((text,),) for text in texts + corrupted])
        places, known = (tensor.to(vectors.device) for tensor in align(contexts, head.history))
        turns = vectors[places] * known[..., None]
        context, last = head.context(turns, known)[:, None], turns[:, -1:]
        features = _diagonal_first(head.features(context, last, vectors[responses][None]))
        if corrupted:
            attacked = head.features(context, last, vectors[len(texts) :][:, None])
            features = torch.cat([features, attacked], dim=1)
        return features


def _diagonal_first(features: Tensor) -> Tensor:
    """(n, n, width) with the diagonal moved to the front of each row."""
    count = len(features)
    order = (torch.arange(count)[:, None] + torch.arange(count)) % count
    return features[torch.arange(count)[:, None], order]


def ranking_items(exchanges: Sequence[Exchange], seed: int) -> list[list[Exchange]]:
    """Each exchange with its response replaced by 15 of other dialogues; the true one first."""
    rng = random.Random(seed)
    items = []
    for exchange in exchanges:
        drawn: list[Exchange] = []
        while len(drawn) < CANDIDATES - 1:
            other = rng.choice(exchanges)
            if other.dialogue is not exchange.dialogue:
                drawn.append(with_response(exchange, other.response.text))
        items.append([exchange, *drawn])
    return items


def with_response(exchange: Exchange, text: str) -> Exchange:
    """The same context with another response."""
    response = Turn(exchange.response.speaker, text, exchange.response.role)
    turns = (*exchange.context, response)
    return Exchange(Dialogue(exchange.dialogue.id, turns), exchange.turn)


def true_ranks(extractor: Extractor, items: Sequence[Sequence[Exchange]]) -> np.ndarray:
    """Rank of the true response, which is the first, by the classifier; ties count against it."""
    flat = [exchange for item in items for exchange in item]
    logits = extractor.logits(extractor.features(flat)).reshape(len(items), -1)
    return 1 + (logits[:, 1:] >= logits[:, :1]).sum(axis=1)
