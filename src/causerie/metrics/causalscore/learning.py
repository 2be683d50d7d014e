"""Training a classifier, and incremental self-training with constraints (algorithm 1)."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from causerie.metrics.causalscore.classifier import Classifier
from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.measure import predict
from causerie.metrics.causalscore.questions import Example, Item, TrainingSet, triple
from causerie.training.corpus import EpochBatches
from causerie.training.encoders import LearnedVectors
from causerie.training.loop import Task

SELF_TRAINED = (2, 3)
"""Distances from the response in self-training: c_{t-2} and c_{t-3}."""


class Classification(Task):
    """Binary cross-entropy on the examples of a training set."""

    def __init__(
        self,
        classifier: Classifier,
        config: CausalScoreConfig,
        examples: TrainingSet,
        valid: Sequence[Example],
        *,
        learn_encoder: bool,
    ) -> None:
        self.classifier, self.config, self.valid = classifier, config, valid
        self.encoder = classifier.encoder
        parts = {"head": classifier.head}
        if learn_encoder:
            parts["encoder"] = self.encoder.model
        self.module = nn.ModuleDict(parts)
        self._learn_encoder = learn_encoder
        self._vectors = (
            LearnedVectors(self.encoder, config.pooling) if learn_encoder else classifier.vectors
        )
        self.batches = EpochBatches(len(examples), config.batch, examples.epoch)

    def rate(self, name: str) -> float:
        return self.config.head_rate if name.startswith("head.") else 1.0

    def batch(self, index: int) -> Sequence[Example]:
        return self.batches[index]

    def loss(self, batch: Sequence[Example]) -> Tensor:
        # Only full tuning, as in the paper, has dropout; an adapter sees each text a few times.
        self.encoder.model.train(self._learn_encoder and self.config.tuning == "full")
        logits = self.classifier.logits([example.question for example in batch], self._vectors)
        labels, weights = (
            torch.tensor([float(getattr(e, key)) for e in batch], device=logits.device)
            for key in ("label", "weight")
        )
        return functional.binary_cross_entropy_with_logits(logits, labels, weights)

    def validate(self) -> dict[str, float]:
        if self._learn_encoder:
            self.encoder.forget()  # its cache belongs to older weights
        return predict(self.classifier, self.valid).measures(self.valid)


@dataclass(frozen=True)
class Round:
    """The log entry of one round of self-training."""

    round: int
    positives: int
    """Number of positives added in this round."""
    negatives: int
    examples: int
    """Number of examples per epoch."""
    auc: float
    """AUC on validation data."""
    balanced_accuracy: float
    kept: bool
    """Whether it was better than the rounds before."""


def self_train(
    classifier: Classifier,
    labelled: Callable[[Sequence[Example]], TrainingSet],
    unlabelled: Sequence[Example],
    config: CausalScoreConfig,
    fit: Callable[[int, TrainingSet], dict[str, float]],
    log: Callable[[Round], None],
) -> None:
    """Run algorithm 1; the classifier ends with the weights of its best round.

    `labelled` returns the training set extended by pseudo-labelled examples; `fit` continues the
    training of the classifier and returns its validation scores.
    """
    pseudo: list[Example] = []
    left = list(unlabelled)
    best: dict[str, float] = {}
    kept: list[dict[str, Tensor]] = []
    for number in range(config.rounds + 1):
        positives: list[Example] = []
        negatives: list[Example] = []
        if number:
            positives, negatives, left = confident(classifier, left, config.confidence)
            if not positives:
                break
            pseudo += positives + negatives
        examples = labelled(pseudo)
        scores = fit(number, examples)
        better = not best or tuple(scores.values()) > tuple(best.values())
        values = scores["auc"], scores["balanced accuracy"]
        log(Round(number, len(positives), len(negatives), len(examples), *values, better))
        if not better:
            break
        best, kept = scores, weights_of(classifier)
    put_weights(classifier, kept)


def confident(
    classifier: Classifier, unlabelled: Sequence[Example], confidence: float
) -> tuple[list[Example], list[Example], list[Example]]:
    """Return new positives, as many new negatives, and the remaining unlabelled examples.

    Positives have a probability above `confidence`, the highest first. Negatives have the lowest
    probabilities at the same distance, so that distance does not predict the label.
    """
    if not unlabelled:
        return [], [], []
    p = classifier.probabilities([example.question for example in unlabelled])
    distances = np.array([example.distance for example in unlabelled])
    high: set[int] = set()
    low: set[int] = set()
    for distance in np.unique(distances):
        places = np.flatnonzero(distances == distance)
        order = places[np.argsort(-p[places], kind="stable")]
        count = min(int((p[places] > confidence).sum()), int((p[places] < 0.5).sum()))
        high.update(order[:count].tolist())
        low.update(order[len(order) - count :].tolist())
    positives = [_labelled(unlabelled[i], True) for i in sorted(high)]
    negatives = [_labelled(unlabelled[i], False) for i in sorted(low)]
    left = [one for i, one in enumerate(unlabelled) if i not in high and i not in low]
    return positives, negatives, left


def unlabelled_triples(
    items: Sequence[Item], dependents: Sequence[Sequence[int]], seed: int
) -> list[Example]:
    """Return candidates for self-training: c_{t-2} and c_{t-3} of each item, given a dependent."""
    rng = random.Random(seed)
    return [
        triple(item, len(item.utterances) - distance, found, False, rng)
        for item, found in zip(items, dependents, strict=True)
        for distance in SELF_TRAINED
        if distance <= len(item.utterances)
    ]


def fingerprint(examples: Sequence[Example]) -> str:
    """Return a digest of examples."""
    text = json.dumps([asdict(example) for example in examples])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _labelled(example: Example, label: bool) -> Example:
    return Example(example.question, label, example.distance, example.conversation)


def _modules(classifier: Classifier) -> tuple[nn.Module, nn.Module]:
    return classifier.head, classifier.encoder.model


def weights_of(classifier: Classifier) -> list[dict[str, Tensor]]:
    """Return a copy of the trainable weights of a classifier."""
    return [
        {n: p.detach().clone() for n, p in module.named_parameters() if p.requires_grad}
        for module in _modules(classifier)
    ]


def put_weights(classifier: Classifier, weights: Sequence[dict[str, Tensor]]) -> None:
    """Restore a classifier from such a copy."""
    with torch.no_grad():
        for module, kept in zip(_modules(classifier), weights, strict=True):
            for name, parameter in module.named_parameters():
                if name in kept:
                    parameter.copy_(kept[name])
    classifier.encoder.forget()
