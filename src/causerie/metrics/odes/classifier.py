"""The classifier: an encoder that stays as it is, and a small network on its token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from causerie.engines.shapes import batches, filled, padded_length
from causerie.engines.tuning import Tuning
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import CLASSES, Utterance

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, Floats
    from causerie.models.artifact import Artifact

CHUNK = 512
"""Utterances that are read at a time,"""
TOKENS_AT_ONCE = 4096
"""and of their tokens, those that the head looks at."""
ABSENT = -1e4
"""Of a pattern where there is no token."""


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """What the encoder makes of an utterance; every vector has length √dimension."""

    tokens: Tensor
    """(tokens, dimension), each in the light of the others."""
    whole: Tensor
    """Their mean."""
    words: Tensor
    """Mean of the tokens by themselves, which tells "ask" from "answer" better."""
    before: Tensor
    """The turn before; zeros if there is none."""


def read(encoder: Encoder, utterances: Sequence[Utterance]) -> list[Reading]:
    """Read each utterance and the turn before it."""
    texts = list(dict.fromkeys(utterance.text for utterance in utterances))
    known = dict(zip(texts, encoder.tokens([((text,),) for text in texts]), strict=True))
    static = dict(zip(texts, encoder.word_vectors(texts), strict=True))
    turns = list(dict.fromkeys(u.before for u in utterances if u.before))
    spoken = dict(zip(turns, encoder.encode([((turn,),) for turn in turns], "mean"), strict=True))
    nothing = np.zeros(encoder.dimension, dtype=np.float32)
    return [
        Reading(
            _scaled(known[u.text].vectors),
            _scaled(known[u.text].vectors.mean(0)),
            _scaled(static[u.text].mean(0) if len(static[u.text]) else nothing),
            _scaled(spoken[u.before] if u.before else nothing),
        )
        for u in utterances
    ]


def _scaled(vectors: Floats) -> Tensor:
    units = functional.normalize(torch.from_numpy(np.array(vectors)), dim=-1)
    scaled: Tensor = vectors.shape[-1] ** 0.5 * units
    return scaled


class Seen(NamedTuple):
    """What was read of several utterances, side by side."""

    tokens: Tensor
    there: Tensor
    """Where there is a token."""
    whole: Tensor

    @classmethod
    def of(cls, readings: Sequence[Reading]) -> Seen:
        tokens = pad_sequence([one.tokens for one in readings], batch_first=True)
        missing = padded_length(tokens.shape[1]) - tokens.shape[1]
        tokens = functional.pad(tokens, (0, 0, 0, missing))
        counts = torch.tensor([len(one.tokens) for one in readings])
        there = torch.arange(tokens.shape[1]) < counts[:, None]
        whole = [torch.cat([one.whole, one.words, one.before]) for one in readings]
        return cls(tokens, there, torch.stack(whole))


class SignalHead(nn.Module):
    """One logit per class: patterns of three tokens, wherever they are, and the whole."""

    def __init__(self, dimension: int, config: OdesConfig) -> None:
        super().__init__()
        self.patterns = nn.Conv1d(dimension, config.width, 3, padding=1)
        self.hidden = nn.Linear(config.width + 3 * dimension, config.hidden)
        self.classes = nn.Linear(config.hidden, len(CLASSES))
        self.lose_some = nn.Dropout(config.dropout / 2)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, seen: Seen) -> Tensor:
        found = functional.gelu(self.patterns(self.lose_some(seen.tokens).transpose(1, 2)))
        strongest = found.masked_fill(~seen.there[:, None], ABSENT).amax(2)
        hidden = self.hidden(torch.cat([strongest, seen.whole], dim=1))
        logits: Tensor = self.classes(self.dropout(functional.gelu(hidden)))
        return logits


class Committee(nn.Module):
    """Heads that learned the same from different beginnings; their mean errs less than each."""

    def __init__(self, dimension: int, config: OdesConfig) -> None:
        super().__init__()
        heads = (SignalHead(dimension, config) for _ in range(config.members))
        self.members = nn.ModuleList(heads)
        self.register_load_state_dict_pre_hook(_of_one_head)  # type: ignore[no-untyped-call]

    def each(self, readings: Sequence[Reading]) -> Tensor:
        """Logits by member."""
        seen = Seen.of(readings)
        return torch.stack([member(seen) for member in self.members])

    def forward(self, readings: Sequence[Reading]) -> Tensor:
        return self.each(readings).mean(0)


def _of_one_head(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Artifacts of before there were committees hold the weights of a single head."""
    for key in [key for key in state if not key.startswith(f"{prefix}members.")]:
        state[f"{prefix}members.0.{key.removeprefix(prefix)}"] = state.pop(key)


class Classifier:
    """Probabilities of all classes."""

    def __init__(self, encoder: Encoder, config: OdesConfig) -> None:
        self.encoder, self.config = encoder, config
        self.head = Committee(encoder.dimension, config).eval()

    def probabilities(self, utterances: Sequence[Utterance]) -> Floats:
        """One row per utterance, one column per class."""
        probabilities = np.empty((len(utterances), len(CLASSES)), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(utterances), CHUNK):
                readings = read(self.encoder, utterances[start : start + CHUNK])
                for places in batches([len(one.tokens) for one in readings], TOKENS_AT_ONCE):
                    logits = self.head(filled([readings[place] for place in places]))
                    found = torch.sigmoid(logits)[: len(places)]
                    probabilities[[start + place for place in places]] = found.numpy()
        return probabilities


def restore(engines: Engines, artifact: Artifact) -> Classifier:
    """The classifier of an artifact."""
    encoder = engines.tuned_encoder(artifact, Tuning("frozen"))
    classifier = Classifier(encoder, OdesConfig(**artifact.options))
    classifier.head.load_state_dict(artifact.part("head"))
    return classifier
