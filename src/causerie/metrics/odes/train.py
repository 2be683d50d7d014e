"""From templates (and labelled utterances of one's own) to an artifact."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.io import Rejected, read_labelled
from causerie.metrics.odes.classifier import Classifier, Reading, SignalHead, read, restore
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import CLASSES, THRESHOLD
from causerie.metrics.odes.templates import Utterance, shipped
from causerie.metrics.trained import TrainingRun, card
from causerie.models.artifact import Artifact
from causerie.text import words
from causerie.training.corpus import EpochBatches
from causerie.training.loop import Task, fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

LIMITS = (
    "English; short utterances to a chatbot, spoken or typed.",
    "Learned from templates: docs/ratings-results.md says how it fares with real users.",
    "The shape of the network was chosen by these templates, which flatters it a little.",
    "It judges one utterance and the turn before it; what was said earlier is not seen.",
)


@dataclass(frozen=True, slots=True)
class Example:
    """An utterance with its classes."""

    utterance: Utterance
    labels: frozenset[str]


def examples(config: OdesConfig) -> tuple[list[Example], list[Example]]:
    """Utterances of the templates to train on, and of those that are kept for testing.

    Two templates may meet in the same words: those are not tested.
    """
    grammar = shipped()
    parts: tuple[list[Example], list[Example]] = ([], [])
    for index, template in enumerate(grammar.templates):
        made = grammar.utterances(template, config.utterances, config.seed)
        held_out = index % config.folds == 0  # some of every class: they stand together
        parts[held_out].extend(Example(utterance, template.labels) for utterance in made)
    learned, tested = parts
    known = {tuple(words(one.utterance.text)) for one in learned}
    return learned, [one for one in tested if tuple(words(one.utterance.text)) not in known]


def labels_of(some: Sequence[Example]) -> NDArray[np.bool_]:
    """One row per example, one column per class."""
    return np.array([[name in one.labels for name in CLASSES] for one in some], dtype=bool)


def f1_scores(decisions: NDArray[np.bool_], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Of each class; nan where it neither occurs nor is said."""
    both = decisions.sum(0) + labels.sum(0)
    scores: NDArray[np.float64] = 2 * (decisions & labels).sum(0) / np.where(both, both, np.nan)
    return scores


class Recognition(Task):
    """Binary cross-entropy of every class; what the encoder makes of an utterance is fixed."""

    def __init__(self, classifier: Classifier, train: list[Example], test: list[Example]) -> None:
        self.classifier, self.config, self._test = classifier, classifier.config, test
        self.module: SignalHead = classifier.head
        readings = read(classifier.encoder, [one.utterance for one in train])
        self._train = list(zip(readings, torch.from_numpy(labels_of(train)).float(), strict=True))
        self.batches = EpochBatches(len(self._train), self.config.batch, self._shuffled)

    def _shuffled(self, epoch: int) -> list[tuple[Reading, Tensor]]:
        rng = random.Random(f"{self.config.seed}/{epoch}")
        return rng.sample(self._train, len(self._train))

    def batch(self, index: int) -> Sequence[tuple[Reading, Tensor]]:
        return self.batches[index]

    def loss(self, batch: Sequence[tuple[Reading, Tensor]]) -> Tensor:
        readings, labels = zip(*batch, strict=True)
        logits = self.module(readings)
        return functional.binary_cross_entropy_with_logits(logits, torch.stack(labels))

    def validate(self) -> dict[str, float]:
        return {"macro F1": float(np.nanmean(measure(self.classifier, self._test)))}


def measure(classifier: Classifier, some: Sequence[Example]) -> NDArray[np.float64]:
    """F1 of each class at the threshold."""
    said = classifier.probabilities([one.utterance for one in some]) > THRESHOLD
    return f1_scores(said, labels_of(some))


def train(engines: Engines, run: TrainingRun) -> tuple[Artifact, Mapping[str, Any]]:
    """Train on the templates and on the run's own utterances; F1 on templates kept apart."""
    config: OdesConfig = run.config
    learned, tested = examples(config)
    learned += own_examples(run)
    encoder = engines.encoder
    torch.manual_seed(config.seed)
    classifier = Classifier(encoder, config)
    run.say(f"reading {len(learned):,} utterances")
    task = Recognition(classifier, learned, tested)
    digest = hashlib.sha256(repr([learned, tested]).encode()).hexdigest()
    fit(
        task,
        config.loop(len(task.batches)),
        run.folder,
        identity={**asdict(config), "examples": digest, "backbone": encoder.sha256},
        resume=run.resume,
        watch=run.watch,
    )
    bare = Artifact(
        metric="odes",
        backbone=encoder.name,
        backbone_sha256=encoder.sha256,
        options=asdict(config),
        network={f"head.{key}": t for key, t in classifier.head.state_dict().items()},
        statistics={},
        card="",
        licence=run.licence,
    )
    scores = measure(restore(engines, bare), tested)  # the weights as they are saved
    results = {f"F1 of {name}": f"{f1:.3f}" for name, f1 in zip(CLASSES, scores, strict=True)}
    results["macro F1 on held-out templates"] = f"{np.nanmean(scores):.3f}"
    facts = {
        "utterances": f"{len(learned):,} to learn, {len(tested):,} to test",
        "seed": config.seed,
        "backbone (SHA-256)": encoder.sha256[:12],
    }
    about = (
        f"A classifier of users' utterances, a small network on {encoder.name}, learned from the "
        "templates in `metrics/odes/utterances.txt`; one template in "
        f"{config.folds} was kept for testing."
    )
    text = card(
        "odes", run, about, {**facts, **results}, LIMITS, held_out=f"one template in {config.folds}"
    )
    return replace(bare, card=text), results


def own_examples(run: TrainingRun) -> list[Example]:
    """Labelled utterances that the user gives."""
    found = []
    for path in run.data:
        for record in read_labelled(path, CLASSES):
            if isinstance(record, Rejected):
                run.say(f"skipped {record}")
            else:
                utterance = Utterance(record.text, record.before)
                found.append(Example(utterance, record.labels))
    return found
