"""The classifier of `slips`: an encoder of context and reply, and lexical features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from causerie.dialogue import Exchange
from causerie.engines.shapes import rowwise
from causerie.metrics.slips.config import SlipsConfig
from causerie.text.lexical import FEATURES, lexical_features
from causerie.training.faulty import FAULTS

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, EncoderInput, Floats
    from causerie.models.artifact import Artifact

LARGEST = 4.0
"""Features are clipped to this many standard deviations, against absurd replies."""


class SlipsHead(nn.Module):
    """One logit per fault, from the encoder's vector and the lexical features."""

    def __init__(self, dimension: int, config: SlipsConfig) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))
        self.hidden = nn.Linear(dimension + len(FEATURES), config.hidden)
        self.faults = nn.Linear(config.hidden, len(FAULTS))
        self.dropout = nn.Dropout(config.dropout)

    def standardise(self, counts: Tensor) -> None:
        """Set mean and scale of the lexical features from typical replies."""
        self.mean: Tensor = counts.mean(0)
        self.scale: Tensor = counts.std(0).clamp_min(1e-3)

    def forward(self, vectors: Tensor, counts: Tensor) -> Tensor:
        vectors = functional.normalize(vectors, dim=-1) * vectors.shape[-1] ** 0.5
        counts = ((counts - self.mean) / self.scale).clamp(-LARGEST, LARGEST)
        seen = functional.gelu(self.hidden(torch.cat([vectors, counts], dim=-1)))
        logits: Tensor = self.faults(self.dropout(seen))
        return logits


class Classifier:
    """Computes the logits of all faults."""

    def __init__(self, encoder: Encoder, config: SlipsConfig) -> None:
        self.encoder, self.config = encoder, config
        self.head = SlipsHead(encoder.dimension, config).to(encoder.device).eval()

    def input(self, context: Sequence[str], reply: str) -> EncoderInput:
        return tuple(context[-self.config.history :]), (reply,)

    def logits(self, exchanges: Sequence[Exchange]) -> Floats:
        """Return one row per exchange and one column per fault."""
        texts = [([turn.text for turn in e.context], e.response.text) for e in exchanges]
        inputs = [self.input(context, reply) for context, reply in texts]
        vectors = torch.from_numpy(self.encoder.encode(inputs, self.config.pooling))
        with torch.inference_mode():
            found = rowwise(self.head, vectors.to(self.encoder.device), counts_of(texts))
        logits: Floats = found.float().cpu().numpy()
        return logits


def counts_of(texts: Sequence[tuple[Sequence[str], str]]) -> Tensor:
    """Return the lexical features of replies after their contexts, one row each."""
    rows = [list(lexical_features(context, reply).values()) for context, reply in texts]
    return torch.from_numpy(np.array(rows, dtype=np.float32).reshape(-1, len(FEATURES)))


def restore(engines: Engines, artifact: Artifact) -> Classifier:
    """Return the trained classifier of an artifact."""
    config = SlipsConfig(**artifact.options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
    classifier = Classifier(encoder, config)
    classifier.head.load_state_dict(artifact.part("head"))
    return classifier
