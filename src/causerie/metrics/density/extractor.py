"""The features g(c, r) of exchanges, computed by an encoder and a head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.engines.shapes import rowwise
from causerie.engines.texts import Texts
from causerie.metrics.density.config import DensityConfig
from causerie.metrics.density.network import CosineHead, Head, PairHead, TowersHead, ViewsHead

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, EncoderInput, Floats
    from causerie.models.artifact import Artifact

CHUNK = 1024
"""Number of exchanges that a head processes at a time."""


HEADS: dict[str, Callable[[int, int, int], PairHead]] = {
    "towers": TowersHead,
    "views": ViewsHead,
    "cosine": CosineHead,
}
"""Heads that compare separately encoded turns."""


class Extractor(ABC):
    """Computes features of exchanges."""

    head: Head

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        self.encoder, self.pooling, self.unit = encoder, config.pooling, config.unit

    @abstractmethod
    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        """Return one row per exchange; every exchange must have a context."""

    def selection(self, items: Sequence[Sequence[Exchange]]) -> list[Floats]:
        """Return the classifier's scores of each item's exchanges, the true one first."""
        logits = self.logits(self.features([exchange for item in items for exchange in item]))
        return np.split(logits, np.cumsum([len(item) for item in items])[:-1])

    def seen(self, features: Floats) -> Floats:
        """Return features as the Gaussian sees them: as they are, or scaled to unit length."""
        if not self.unit:
            return features
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        directions: Floats = features / np.maximum(lengths, np.finfo(np.float32).tiny)
        return directions

    def logits(self, features: Floats) -> Floats:
        """Return the classifier's score of each row."""
        with torch.inference_mode():
            rows = torch.from_numpy(features).to(self.encoder.device)
            logits: Floats = rowwise(self.head.logits, rows).cpu().numpy()
        return logits


class Cross(Extractor):
    """The paper's cross-encoder, whose features are its output for "context [SEP] response"."""

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        super().__init__(encoder, config)
        self.head = Head(encoder.dimension).to(encoder.device).eval()

    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        return self.encoder.encode([self.input(e) for e in exchanges], self.pooling)

    def input(self, exchange: Exchange) -> EncoderInput:
        # more turns than the window has tokens would be cut anyway
        context = tuple(turn.text for turn in exchange.last(self.encoder.input.window))
        return context, (exchange.response.text,)


class Towers(Extractor):
    """Encodes every turn by itself, equal texts once."""

    head: PairHead

    def __init__(self, encoder: Encoder, config: DensityConfig) -> None:
        super().__init__(encoder, config)
        self.history = config.history
        made = HEADS[config.interaction](encoder.dimension, config.width, config.history)
        self.head = made.to(encoder.device).eval()

    def features(self, exchanges: Sequence[Exchange]) -> Floats:
        parts = [
            self._features(exchanges[start : start + CHUNK])
            for start in range(0, len(exchanges), CHUNK)
        ]
        return np.concatenate(parts)

    def _features(self, exchanges: Sequence[Exchange]) -> Floats:
        texts = Texts()
        contexts = texts.contexts(exchanges, self.history)
        responses = texts.places(exchange.response.text for exchange in exchanges)
        encoded = self.encoder.encode(texts.inputs, self.pooling)
        with torch.inference_mode():
            vectors = texts.vectors(torch.from_numpy(encoded).to(self.encoder.device))
            compared = rowwise(self.head.features, vectors[contexts], vectors[responses])
        features: Floats = compared.cpu().numpy()
        return features


EXTRACTORS: dict[str, type[Extractor]] = {
    "cross": Cross,
    "towers": Towers,
    "views": Towers,
    "cosine": Towers,
}


def restore(engines: Engines, artifact: Artifact) -> Extractor:
    """Return the trained extractor of an artifact."""
    config = DensityConfig(**artifact.options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
    extractor = EXTRACTORS[config.interaction](encoder, config)
    extractor.head.load_state_dict(artifact.part("head"))
    return extractor
