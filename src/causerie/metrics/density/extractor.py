"""g(c, r) on whole exchanges: the encoder engine and a head together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.metrics.density.network import CrossHead, TowersHead

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder, Floats
    from causerie.metrics.density.config import DensityConfig


class Extractor(ABC):
    """Features of exchanges."""

    head: CrossHead | TowersHead

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        self.encoder, self.pooling = encoder, config.pooling

    @abstractmethod
    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        """One row per exchange; every exchange has a context."""

    def logits(self, features: Floats) -> Floats:
        """The classifier's own score of each row."""
        with torch.inference_mode():
            rows = torch.from_numpy(features).to(self.encoder.device)
            logits: Floats = self.head.logits(rows).cpu().numpy()
        return logits


class Cross(Extractor):
    """The paper's cross-encoder."""

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        super().__init__(encoder, config)
        self.head = CrossHead(encoder.dimension).to(encoder.device)

    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        # more turns than fit the window would only be cut again
        window = self.encoder.input.window
        return self.encoder.encode(
            [
                (tuple(turn.text for turn in e.last(window)), (e.response.text,))
                for e in exchanges
            ],
            self.pooling,
        )


class Towers(Extractor):
    """Every turn is encoded once."""

    head: TowersHead

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        super().__init__(encoder, config)
        self.head = TowersHead(encoder.dimension, config.history).to(encoder.device)

    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        history = self.head.history
        windows = [[*e.last(history), e.response] for e in exchanges]
        texts = list(dict.fromkeys(turn.text for window in windows for turn in window))
        place = {text: index for index, text in enumerate(texts)}
        encoded = self.encoder.encode([((text,),) for text in texts], self.pooling)
        vectors = torch.from_numpy(encoded).to(self.encoder.device)
        found = []
        with torch.inference_mode():
            for start in range(0, len(windows), 1024):
                part = [[place[t.text] for t in w] for w in windows[start : start + 1024]]
                contexts, known = (
                    t.to(vectors.device) for t in align([w[:-1] for w in part], history)
                )
                turns = vectors[contexts] * known[..., None]
                context = self.head.context(turns, known)
                response = vectors[[w[-1] for w in part]]
                found.append(self.head.features(context, turns[:, -1], response))
        return torch.cat(found).cpu().numpy() if found else np.zeros((0, 1), np.float32)


def align(contexts: Sequence[Sequence[int]], history: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of turns as (contexts, history), the latest last; and which places are filled."""
    numbers = torch.zeros(len(contexts), history, dtype=torch.long)
    known = torch.zeros(len(contexts), history, dtype=torch.bool)
    for row, context in enumerate(contexts):
        latest = list(context)[-history:]
        numbers[row, history - len(latest) :] = torch.tensor(latest, dtype=torch.long)
        known[row, history - len(latest) :] = True
    return numbers, known


EXTRACTORS: dict[str, type[Extractor]] = {"cross": Cross, "towers": Towers}
