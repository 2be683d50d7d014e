"""C_uncond and C_cond: an encoder and a head that turn texts into probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from causerie.dialogue import Exchange
from causerie.engines.shapes import rowwise
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.formula import CausalGraph, dependents_of
from causerie.metrics.causalscore.questions import Item, Question, window_of
from causerie.text import words

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, EncoderInput, Floats
    from causerie.models.artifact import Artifact
    from causerie.training.encoders import Vectors

CHUNK = 4096
"""Number of questions that a head processes at a time."""
UNCONDITIONAL, CONDITIONAL = "unconditional", "conditional"
"""The parts of an artifact that hold the heads."""
SECOND_ENCODER = "conditional_encoder"
"""The part of an artifact with the conditional classifier's encoder, for `cross`."""
SHARPNESS = 5.0
"""Initial weight of the cosine of utterance and response."""


class CrossHead(nn.Module):
    """Maps the vector of texts read together to a logit."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(dimension, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.classifier(vectors).squeeze(-1)
        return logits


class TowersHead(nn.Module):
    """Compares the vectors of texts read separately with a small network.

    Its inputs are each vector, the products and differences of every two, and their cosines.
    Before training, the logit is mostly the cosine of the first and the last text, an utterance
    and a response.
    """

    def __init__(self, texts: int, dimension: int, width: int, dropout: float) -> None:
        super().__init__()
        self.pairs = list(combinations(range(texts), 2))
        self.narrow = nn.Linear(dimension, width)
        self.hidden = nn.Linear((texts + 2 * len(self.pairs)) * width, 2 * width)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * width + len(self.pairs), 1)
        with torch.no_grad():
            self.classifier.weight[0, 2 * width :] = 0
            self.classifier.weight[0, 2 * width + self.pairs.index((0, texts - 1))] = SHARPNESS

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the logits of vectors (tuples, texts, dimension)."""
        units = functional.normalize(vectors, dim=-1)
        narrow = self.narrow(vectors.shape[-1] ** 0.5 * units).unbind(dim=1)
        seen = [*narrow]
        for i, j in self.pairs:
            seen += [narrow[i] * narrow[j], (narrow[i] - narrow[j]).abs()]
        hidden = self.dropout(functional.gelu(self.hidden(self.dropout(torch.cat(seen, dim=-1)))))
        cosines = [(units[:, i] * units[:, j]).sum(-1, keepdim=True) for i, j in self.pairs]
        logits: Tensor = self.classifier(torch.cat([hidden, *cosines], dim=-1)).squeeze(-1)
        return logits


class GivenHead(nn.Module):
    """C_cond of two towers: the logit of C_uncond, and how the given utterance changes it.

    Its inputs include the logits of C_uncond (which is not trained further) for the utterance and
    the given one with the response, and for each with the other: whether one answers the other
    tells which came first. Before training, the logit nearly equals C_uncond's for utterance and
    response. If `distance`, the distances of both from the response are inputs, too.
    """

    ASKED = ((0, 2), (1, 2), (0, 1), (1, 0))

    def __init__(
        self,
        unconditional: TowersHead,
        dimension: int,
        width: int,
        dropout: float,
        *,
        distance: bool = False,
    ) -> None:
        super().__init__()
        self._unconditional = (unconditional,)  # in a tuple, so as not to be part of this network
        self.distance = distance
        self.change = TowersHead(3, dimension, width, dropout)
        self.weigh = nn.Linear(len(self.ASKED) + (PLACES if distance else 0), 1)
        with torch.no_grad():
            self.change.classifier.weight.mul_(0.1)
            self.change.classifier.bias.zero_()
            self.weigh.weight.zero_()
            self.weigh.weight[0, 0] = 1
            self.weigh.bias.zero_()

    def forward(self, vectors: Tensor, distances: Tensor) -> Tensor:
        """Return the logits of (tuples, texts, dimension): utterance, given one, response.

        `distances` are those of the first two.
        """
        (unconditional,) = self._unconditional
        unconditional.eval()
        with torch.no_grad():
            said = torch.stack([unconditional(vectors[:, pair]) for pair in self.ASKED], dim=-1)
        seen = torch.cat([said, places(distances)], dim=-1) if self.distance else said
        logits: Tensor = self.change(vectors) + self.weigh(seen).squeeze(-1)
        return logits


PLACES = 5
PLACES_WEIGHT = 10.0
"""Scale of the position features, so that small steps of training can use them."""


def places(distances: Tensor) -> Tensor:
    """Return position features of two utterances for C_cond.

    Distances of 0, which only padding rows have, count as 1.
    """
    far = distances.clamp(min=1).float()
    first = (distances == 1).float()
    nearer = (far[:, :1] < far[:, 1:]).float()
    return PLACES_WEIGHT * torch.cat([far.log(), first, nearer], dim=-1)


class Classifier(ABC):
    """Tells whether responses depend on utterances; all questions have equally many texts."""

    head: nn.Module

    def __init__(self, encoder: Encoder, config: CausalScoreConfig) -> None:
        self.encoder, self.pooling = encoder, config.pooling
        self.vectors: Vectors = self._encode
        """Source of the vectors; training on a fixed encoder replaces it by a cache."""

    @abstractmethod
    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        """Return one logit per question, with gradients if the vectors have them."""

    def probabilities(self, questions: Sequence[Question]) -> Floats:
        """Return p(dependent) of each question; equal ones are computed once."""
        distinct = {question: place for place, question in enumerate(dict.fromkeys(questions))}
        asked = list(distinct)
        answers = np.empty(len(asked), dtype=np.float32)
        self.head.eval()
        for start in range(0, len(asked), CHUNK):
            with torch.inference_mode():
                logits = self.logits(asked[start : start + CHUNK], self.vectors)
            chances = rowwise(torch.sigmoid, logits.float())
            answers[start : start + CHUNK] = chances.cpu().numpy()
        return answers[[distinct[question] for question in questions]]

    def _encode(self, inputs: Sequence[EncoderInput]) -> Tensor:
        vectors = torch.from_numpy(self.encoder.encode(inputs, self.pooling))
        return vectors.to(self.encoder.device)


class Cross(Classifier):
    """The paper's classifier: the encoder reads "utterance [SEP] given [SEP] response"."""

    def __init__(self, encoder: Encoder, config: CausalScoreConfig) -> None:
        super().__init__(encoder, config)
        self.head = CrossHead(encoder.dimension).to(encoder.device)

    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        inputs = [tuple((text,) for text in question.texts) for question in questions]
        return rowwise(self.head, vectors(inputs))


class Towers(Classifier):
    """Encodes every text by itself, equal ones once."""

    def __init__(
        self, encoder: Encoder, config: CausalScoreConfig, unconditional: TowersHead | None = None
    ) -> None:
        """Create C_cond if `unconditional`, the head of C_uncond, is given; else C_uncond."""
        super().__init__(encoder, config)
        size = encoder.dimension, config.width, config.dropout
        head: nn.Module = (
            GivenHead(unconditional, *size, distance=config.distance)
            if unconditional
            else TowersHead(2, *size)
        )
        self.head = head.to(encoder.device)
        self._conditional = unconditional is not None

    def logits(self, questions: Sequence[Question], vectors: Vectors) -> Tensor:
        rows = [question.texts for question in questions]
        places: dict[str, int] = {}
        index = [[places.setdefault(text, len(places)) for text in row] for row in rows]
        encoded = vectors([((text,),) for text in places])
        inputs = [encoded[torch.tensor(index, device=encoded.device)]]
        if self._conditional:
            distances = [question.distances or (1, 1) for question in questions]
            inputs.append(torch.tensor(distances, device=encoded.device))
        return rowwise(self.head, *inputs)


@dataclass(frozen=True, eq=False)
class Classifiers:
    """C_uncond and C_cond."""

    unconditional: Classifier
    conditional: Classifier
    history: int | None
    """Number of turns before a response that they were trained on; None for all."""

    @classmethod
    def untrained(cls, encoder: Encoder, second: Encoder, config: CausalScoreConfig) -> Classifiers:
        """Create untrained classifiers; `second` is the encoder of the conditional one."""
        if config.interaction == "cross":
            return cls(Cross(encoder, config), Cross(second, config), config.history)
        unconditional = Towers(encoder, config)
        assert isinstance(unconditional.head, TowersHead)
        conditional = Towers(second, config, unconditional.head)
        return cls(unconditional, conditional, config.history)

    @property
    def heads(self) -> dict[str, nn.Module]:
        """The heads by their part in an artifact."""
        return {UNCONDITIONAL: self.unconditional.head, CONDITIONAL: self.conditional.head}

    def graphs(
        self, exchanges: Sequence[Exchange], history: int | None = None
    ) -> list[CausalGraph]:
        """Return the causal graph of each response, with two calls for all of them."""
        windows = [_since_repeated(e, history or self.history) for e in exchanges]
        responses = [exchange.response.text for exchange in exchanges]
        both = list(zip(windows, responses, strict=True))
        asked = [Question(utterance, r) for window, r in both for utterance in window]
        answers = iter(self.unconditional.probabilities(asked).tolist())
        unconditional = [tuple(next(answers) for _ in window) for window in windows]
        # by position, not by text: two utterances may have the same text
        pairs = [list(permutations(dependents_of(found), 2)) for found in unconditional]
        asked = [
            Question(window[i], response, window[j], (len(window) - i, len(window) - j))
            for (window, response), places in zip(both, pairs, strict=True)
            for i, j in places
        ]
        answers = iter(self.conditional.probabilities(asked).tolist())
        return [
            CausalGraph(found, {place: next(answers) for place in places})
            for found, places in zip(unconditional, pairs, strict=True)
        ]


def _since_repeated(exchange: Exchange, history: int | None) -> tuple[str, ...]:
    """Return the window searched for causes, which starts at the last turn the response repeats.

    Earlier turns caused that turn; given the turn, its repetition does not depend on them.
    """
    window = window_of(exchange, history)
    response = words(exchange.response.text)
    if not response:
        return window
    repeated = [i for i, said in enumerate(window) if words(said) == response]
    return window[repeated[-1] :] if repeated else window


def restore(engines: Engines, artifact: Artifact) -> Classifiers:
    """Return the trained C_uncond and C_cond of an artifact."""
    config = CausalScoreConfig(**artifact.options)
    tuning, window = config.encoder_tuning, config.window
    # A probability near one half that falls on the other side changes the whole score.
    encoder = engines.tuned_encoder(artifact, tuning, window, exact=True)
    second = encoder
    if config.interaction == "cross":
        second = engines.tuned_encoder(artifact, tuning, window, SECOND_ENCODER, exact=True)
    both = Classifiers.untrained(encoder, second, config)
    for part, head in both.heads.items():
        head.load_state_dict(artifact.part(part))
        head.eval()
    return both


def dependents(classifier: Classifier, items: Sequence[Item]) -> list[tuple[int, ...]]:
    """Return for each item the utterances that the response depends on."""
    questions = [Question(text, item.response) for item in items for text in item.utterances]
    answers = classifier.probabilities(questions).tolist()
    found, start = [], 0
    for item in items:
        stop = start + len(item.utterances)
        found.append(dependents_of(tuple(answers[start:stop])))
        start = stop
    return found
