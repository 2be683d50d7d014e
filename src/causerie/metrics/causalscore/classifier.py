"""C_uncond and C_cond: the encoder engine and a head together, texts in, probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import dependents_of
from causerie.metrics.causalscore.network import CrossHead, GivenHead, TowersHead
from causerie.metrics.causalscore.questions import Item, Question

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, EncoderInput, Floats
    from causerie.models.artifact import Artifact
    from causerie.training.vectors import Vectors

CHUNK = 4096
"""Questions that a head takes at a time."""


class Classifier(ABC):
    """Whether a response depends on an utterance; all questions have the same number of texts."""

    head: nn.Module

    def __init__(self, encoder: Encoder, config: CausalScoreConfig) -> None:
        self.encoder, self.pooling = encoder, config.pooling
        self.vectors: Vectors = self._encode
        """Where vectors come from; training of a fixed encoder keeps them all."""

    @abstractmethod
    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        """One per question, with gradients where the vectors have them."""

    def probabilities(self, questions: Sequence[Question]) -> Floats:
        """p(dependent) of each question; equal ones are answered once."""
        distinct = {question: place for place, question in enumerate(dict.fromkeys(questions))}
        asked = list(distinct)
        answers = np.empty(len(asked), dtype=np.float32)
        self.head.eval()
        for start in range(0, len(asked), CHUNK):
            with torch.inference_mode():
                logits = self.logits(asked[start : start + CHUNK], self.vectors)
            answers[start : start + CHUNK] = torch.sigmoid(logits.float()).cpu().numpy()
        return answers[[distinct[question] for question in questions]]

    def _encode(self, inputs: Sequence[EncoderInput]) -> Tensor:
        vectors = torch.from_numpy(self.encoder.encode(inputs, self.pooling))
        return vectors.to(self.encoder.device)


class Cross(Classifier):
    """The paper's: the encoder reads "utterance [SEP] given [SEP] response"."""

    def __init__(self, encoder: Encoder, config: CausalScoreConfig) -> None:
        super().__init__(encoder, config)
        self.head = CrossHead(encoder.dimension).to(encoder.device)

    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        inputs = [tuple((text,) for text in question.texts) for question in questions]
        logits: Tensor = self.head(vectors(inputs))
        return logits


class Towers(Classifier):
    """Every text is encoded by itself, equal ones once."""

    def __init__(
        self, encoder: Encoder, config: CausalScoreConfig, unconditional: TowersHead | None = None
    ) -> None:
        """C_cond, where `unconditional` is the head of C_uncond; without, that one."""
        super().__init__(encoder, config)
        size = encoder.dimension, config.width, config.dropout
        head = GivenHead(unconditional, *size) if unconditional else TowersHead(2, *size)
        self.head: nn.Module = head.to(encoder.device)

    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        rows = [question.texts for question in questions]
        places: dict[str, int] = {}
        index = [[places.setdefault(text, len(places)) for text in row] for row in rows]
        encoded = vectors([((text,),) for text in places])
        logits: Tensor = self.head(encoded[torch.tensor(index, device=encoded.device)])
        return logits


UNCONDITIONAL, CONDITIONAL = "unconditional", "conditional"
"""The parts of an artifact that hold the heads."""
SECOND_ENCODER = "conditional_encoder"
"""And, for `cross`, the encoder of the conditional classifier."""


def classifiers(
    encoder: Encoder, second: Encoder, config: CausalScoreConfig
) -> tuple[Classifier, Classifier]:
    """C_uncond and C_cond before any training; `second` is the encoder of the latter."""
    if config.interaction == "cross":
        return Cross(encoder, config), Cross(second, config)
    unconditional = Towers(encoder, config)
    assert isinstance(unconditional.head, TowersHead)
    return unconditional, Towers(second, config, unconditional.head)


def restore(engines: Engines, artifact: Artifact) -> tuple[Classifier, Classifier]:
    """C_uncond and C_cond as the artifact's training left them."""
    config = CausalScoreConfig(**artifact.options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
    second = encoder
    if config.interaction == "cross":
        second = engines.tuned_encoder(
            artifact, config.encoder_tuning, config.window, SECOND_ENCODER
        )
    both = classifiers(encoder, second, config)
    for classifier, part in zip(both, (UNCONDITIONAL, CONDITIONAL), strict=True):
        classifier.head.load_state_dict(artifact.part(part))
        classifier.head.eval()
    return both


def dependents(classifier: Classifier, items: Sequence[Item]) -> list[tuple[int, ...]]:
    """Of each item, the utterances that the response depends on."""
    questions = [Question(text, item.response) for item in items for text in item.utterances]
    answers = classifier.probabilities(questions).tolist() if questions else []
    found, start = [], 0
    for item in items:
        stop = start + len(item.utterances)
        found.append(dependents_of(tuple(answers[start:stop])))
        start = stop
    return found
