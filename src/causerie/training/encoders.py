"""Encoders in training: their starting weights, and text vectors with or without gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from causerie.engines.encoder import Encoder, EncoderInput, pool
from causerie.engines.tuning import Tuning
from causerie.errors import CauserieError
from causerie.models import Pooling
from causerie.models.artifact import Artifact, damaged
from causerie.training.config import ENCODER, EncoderConfig, TrainingConfig
from causerie.training.trainable import TrainingRun

if TYPE_CHECKING:
    from torch import nn

    from causerie.engines import Engines

TEXTS_AT_ONCE = 16
"""Number of texts encoded together: of similar length, for little padding."""


def starting_encoder(
    engines: Engines, run: TrainingRun, metric: str, head: Sequence[str], part: str = "encoder"
) -> Encoder:
    """Return an encoder prepared for training as configured, with the weights of --init if given.

    If --init is an artifact of the same metric, the settings of the heads (`head`) must also
    agree with it, and `part` names the encoder in it.
    """
    config: EncoderConfig = run.config
    if config.fixed and config.tuning != "frozen" and not run.start:
        raise CauserieError("fixed=true needs the encoder of --init, or tuning=frozen")
    encoder = engines.new_encoder()
    encoder.input.window = min(encoder.input.window, config.window)
    encoder.model = config.encoder_tuning.prepare(encoder.model)
    if run.start:
        own = run.own_start(metric)
        start = own or run.start.artifact
        check_start(start, config, encoder, (*head, *ENCODER) if own else ENCODER)
        try:
            weights = start.part(part if own else "encoder")
            config.encoder_tuning.load(encoder.model, weights)
        except (KeyError, RuntimeError, ValueError) as error:
            raise damaged("of --init", error) from error
    if not config.learns_encoder:
        encoder.model.eval()
    return encoder


def averaged_with_stock(
    engines: Engines, tuning: Tuning, encoder: Encoder, share: float
) -> dict[str, Tensor]:
    """Return the trained weights of an encoder, averaged with its untuned weights.

    Training on narrow data forgets, and an average often keeps the knowledge of both. An untuned
    adapter adds nothing, so only the second of its two factors is scaled down.
    """
    weights = tuning.weights(encoder.model)
    if not share:
        return weights
    stock = tuning.weights(tuning.prepare(engines.new_encoder().model))
    return {
        name: weight if "lora_A" in name else torch.lerp(weight, stock[name], share)
        for name, weight in weights.items()
    }


def load_heads(run: TrainingRun, metric: str, heads: Mapping[str, nn.Module]) -> None:
    """Load the heads, by part of the artifact, if --init is an artifact of the same metric."""
    if start := run.own_start(metric):
        try:
            for part, head in heads.items():
                head.load_state_dict(start.part(part))
        except RuntimeError as error:
            raise damaged("of --init", error) from error


def check_start(
    start: Artifact, config: TrainingConfig, encoder: Encoder, settings: Sequence[str]
) -> None:
    """Check that settings and backbone agree with those of an earlier training."""
    differs = [key for key in settings if start.options.get(key) != getattr(config, key)]
    if differs:
        theirs = ", ".join(f"{key}={start.options.get(key)}" for key in differs)
        raise CauserieError(f"--init was trained with {theirs}: do not change these settings")
    if start.backbone_sha256 != encoder.sha256:
        raise CauserieError(f"--init was trained on {start.backbone}: give the same --encoder")


class Vectors(Protocol):
    """Return one vector per input, in input order."""

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor: ...


class LearnedVectors:
    """Vectors of an encoder that is being trained; equal inputs are encoded once."""

    def __init__(self, encoder: Encoder, pooling: Pooling) -> None:
        self._encoder, self._pooling = encoder, pooling

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor:
        distinct = list(dict.fromkeys(inputs))
        rows = self._encoder.input.rows(distinct)
        order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
        parts = []
        for start in range(0, len(order), TEXTS_AT_ONCE):
            group = order[start : start + TEXTS_AT_ONCE]
            batch = self._encoder.input.collate([rows[index] for index in group])
            hidden = self._encoder.forward(batch)
            parts.append(pool(hidden, batch["attention_mask"], self._pooling))
        places = {distinct[index]: place for place, index in enumerate(order)}
        return torch.cat(parts)[[places[one] for one in inputs]]


class FixedVectors:
    """Vectors of an encoder that is not trained; every input is encoded only once."""

    def __init__(self, encoder: Encoder, pooling: Pooling) -> None:
        self._encoder, self._pooling = encoder, pooling
        self._known: dict[EncoderInput, Tensor] = {}

    def __call__(self, inputs: Sequence[EncoderInput]) -> Tensor:
        new = [one for one in dict.fromkeys(inputs) if one not in self._known]
        if new:
            vectors = torch.from_numpy(self._encoder.encode(new, self._pooling))
            self._known.update(zip(new, vectors, strict=True))
        return torch.stack([self._known[one] for one in inputs]).to(self._encoder.device)
