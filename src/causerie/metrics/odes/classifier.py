"""The classifier: an encoder that reads both turns, each by itself, and a small network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import CLASSES
from causerie.metrics.odes.templates import Utterance
from causerie.training.vectors import Vectors

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, Floats
    from causerie.models.artifact import Artifact

CHUNK = 4096
"""Utterances that the small network takes at a time."""


class SignalHead(nn.Module):
    """One logit per class from the vectors of the utterance, of the turn before, and both."""

    def __init__(self, dimension: int, width: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(3 * dimension, width)
        self.dropout = nn.Dropout(dropout)
        self.classes = nn.Linear(width, len(CLASSES))

    def forward(self, utterance: Tensor, before: Tensor) -> Tensor:
        scale = utterance.shape[-1] ** 0.5
        u, b = (scale * functional.normalize(v, dim=-1) for v in (utterance, before))
        hidden = functional.gelu(self.hidden(torch.cat([u, b, u * b], dim=-1)))
        logits: Tensor = self.classes(self.dropout(hidden))
        return logits


class Classifier:
    """Probabilities of all classes; no turn before counts as a vector of zeros."""

    def __init__(self, encoder: Encoder, config: OdesConfig) -> None:
        self.encoder, self.config = encoder, config
        head = SignalHead(encoder.dimension, config.width, config.dropout)
        self.head = head.to(encoder.device).eval()

    def logits(self, utterances: Sequence[Utterance], vectors: Vectors) -> Tensor:
        said = vectors([((utterance.text,),) for utterance in utterances])
        known = [index for index, utterance in enumerate(utterances) if utterance.before]
        before = torch.zeros_like(said)
        if known:
            texts = [utterances[index].before or "" for index in known]
            before = before.index_copy(
                0, torch.tensor(known, device=said.device), vectors([((text,),) for text in texts])
            )
        logits: Tensor = self.head(said, before)
        return logits

    def probabilities(self, utterances: Sequence[Utterance]) -> Floats:
        """One row per utterance, one column per class."""

        def vectors(inputs: Sequence[tuple[tuple[str, ...], ...]]) -> Tensor:
            encoded = self.encoder.encode(inputs, self.config.pooling)
            return torch.from_numpy(encoded).to(self.encoder.device)

        parts = [torch.empty(0, len(CLASSES))]
        with torch.inference_mode():
            for start in range(0, len(utterances), CHUNK):
                logits = self.logits(utterances[start : start + CHUNK], vectors)
                parts.append(torch.sigmoid(logits).float().cpu())
        probabilities: Floats = torch.cat(parts).numpy()
        return probabilities


def restore(engines: Engines, artifact: Artifact) -> Classifier:
    """The classifier of an artifact."""
    config = OdesConfig(**artifact.options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
    classifier = Classifier(encoder, config)
    classifier.head.load_state_dict(artifact.part("head"))
    return classifier
