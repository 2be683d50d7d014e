"""From templates (and labelled utterances of one's own) to an artifact."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from causerie.io import Rejected, read_labelled
from causerie.metrics.odes.classifier import Classifier, Committee, Reading, read, restore
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import CLASSES, THRESHOLD, Utterance, fingerprint, shipped
from causerie.text import words
from causerie.training.corpus import EpochBatches
from causerie.training.encoders import check_start, load_heads
from causerie.training.loop import Task
from causerie.training.trainable import Trained, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

NAME = "odes"
HEAD = ("width", "hidden", "members")
"""Settings that must agree for the weights of --init to fit."""
LIMITS = (
    "English; short utterances to a chatbot, spoken or typed.",
    "Learned mostly from templates: docs/odes-guideline.md says how it fares with real users.",
    "The shape of the network was chosen by these templates, which flatters it a little.",
    "It judges one utterance and the turn before it; what was said earlier is not seen.",
)
EVERYTHING = frozenset(CLASSES)


@dataclass(frozen=True, slots=True)
class Example:
    """An utterance with its classes."""

    utterance: Utterance
    labels: frozenset[str]
    judged: frozenset[str] = EVERYTHING
    """Classes that it has or has not; whether it has others is not known."""


def folds(config: OdesConfig) -> list[list[Example]]:
    """The utterances of all templates in `config.folds` parts; a template is in one of them."""
    grammar = shipped()
    parts: list[list[Example]] = [[] for _ in range(config.folds)]
    for index, template in enumerate(grammar.templates):
        made = grammar.utterances(template, config.utterances, config.seed)
        part = parts[index % config.folds]  # some of every class: they stand together
        part.extend(Example(utterance, template.labels) for utterance in made)
    return parts


def examples(
    config: OdesConfig, own: Sequence[Example] = ()
) -> tuple[list[Example], list[Example]]:
    """Utterances to train on, one's own among them, and those of templates kept for testing.

    Two templates, or a template and one's own, may meet in the same words: those are not tested.
    """
    tested, *others = folds(config)
    learned = [*(one for part in others for one in part), *own]
    return learned, apart(tested, learned)


def apart(some: Sequence[Example], learned: Sequence[Example]) -> list[Example]:
    """Those that are not, word for word, among what is learned."""
    known = {tuple(words(one.utterance.text)) for one in learned}
    return [one for one in some if tuple(words(one.utterance.text)) not in known]


def labels_of(some: Sequence[Example]) -> NDArray[np.bool_]:
    """One row per example, one column per class."""
    return np.array([[name in one.labels for name in CLASSES] for one in some], dtype=bool)


def judged_of(some: Sequence[Example]) -> NDArray[np.bool_]:
    """Where the labels say something, in the same order."""
    return np.array([[name in one.judged for name in CLASSES] for one in some], dtype=bool)


def f1_scores(decisions: NDArray[np.bool_], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Of each class; nan where it neither occurs nor is said."""
    both = decisions.sum(0) + labels.sum(0)
    scores: NDArray[np.float64] = 2 * (decisions & labels).sum(0) / np.where(both, both, np.nan)
    return scores


Learned = tuple[Reading, Tensor, Tensor]
"""What was read, its labels, and which of them are judged."""


class Recognition(Task):
    """Binary cross-entropy of every class judged; what the encoder reads is fixed."""

    def __init__(self, classifier: Classifier, train: list[Example], test: list[Example]) -> None:
        self.classifier, self.config, self._test = classifier, classifier.config, test
        self.module: Committee = classifier.head
        readings = read(classifier.encoder, [one.utterance for one in train])
        labels, judged = (torch.from_numpy(of(train)).float() for of in (labels_of, judged_of))
        self._train: list[Learned] = list(zip(readings, labels, judged, strict=True))
        self.batches = EpochBatches(len(self._train), self.config.batch, self._shuffled)

    def _shuffled(self, epoch: int) -> list[Learned]:
        rng = random.Random(f"{self.config.seed}/{epoch}")
        return rng.sample(self._train, len(self._train))

    def batch(self, index: int) -> Sequence[Learned]:
        return self.batches[index]

    def loss(self, batch: Sequence[Learned]) -> Tensor:
        readings, labels, judged = zip(*batch, strict=True)
        every = [
            judged_loss(one, torch.stack(labels), torch.stack(judged))
            for one in self.module.each(readings)
        ]
        return torch.stack(every).mean()

    def validate(self) -> dict[str, float]:
        return {"macro F1": float(np.nanmean(measure(self.classifier, self._test)))}


def judged_loss(logits: Tensor, labels: Tensor, judged: Tensor) -> Tensor:
    """The mean over what is judged: a class that may be there or not teaches nothing."""
    losses = functional.binary_cross_entropy_with_logits(logits, labels, judged, reduction="sum")
    return losses / judged.sum()


def measure(classifier: Classifier, some: Sequence[Example]) -> NDArray[np.float64]:
    """F1 of each class at the threshold, where it is judged."""
    said = classifier.probabilities([one.utterance for one in some]) > THRESHOLD
    return f1_scores(said & judged_of(some), labels_of(some))


def train(engines: Engines, run: TrainingRun) -> Trained:
    """Train on the templates and on the run's own utterances; F1 on templates kept apart."""
    config: OdesConfig = run.config
    own = own_examples(run)
    learned, tested = examples(config, own)
    encoder = engines.encoder
    torch.manual_seed(config.seed)
    classifier = Classifier(encoder, config)
    if start := run.own_start(NAME):
        check_start(start, config, encoder, HEAD)
        load_heads(run, NAME, {"head": classifier.head})
    run.say(f"reading {len(learned):,} utterances")
    task = Recognition(classifier, learned, tested)
    digest = hashlib.sha256(repr([learned, tested]).encode()).hexdigest()
    run.fit(
        task,
        config.loop(len(task.batches)),
        {"examples": digest, "backbone": encoder.sha256},
    )
    bare = run.artifact(NAME, encoder, config, {"head": classifier.head.state_dict()})
    scores = measure(restore(engines, bare), tested)  # the weights as they are saved
    results = {f"F1 of {name}": f"{f1:.3f}" for name, f1 in zip(CLASSES, scores, strict=True)}
    results["macro F1 on held-out templates"] = f"{np.nanmean(scores):.3f}"
    facts = {
        "utterances": f"{len(learned):,} to learn, {len(tested):,} to test",
        "templates (SHA-256)": fingerprint()[:12],
        "seed": config.seed,
        "backbone (SHA-256)": encoder.sha256[:12],
    }
    about = (
        f"A classifier of users' utterances, a small network on {encoder.name}, learned from the "
        f"templates in `metrics/odes/utterances.txt`{_more(own)}; one template in "
        f"{config.folds} was kept for testing."
    )
    text = run.card(
        NAME, about, {**facts, **results}, LIMITS, held_out=f"one template in {config.folds}"
    )
    return replace(bare, card=text), results


def _more(own: Sequence[Example]) -> str:
    return f" and from {len(own):,} labelled utterances" if own else ""


def own_examples(run: TrainingRun) -> list[Example]:
    """Labelled utterances that the user gives."""
    found = []
    for path in run.data:
        for record in read_labelled(path, CLASSES):
            if isinstance(record, Rejected):
                run.say(f"skipped {record}")
            else:
                utterance = Utterance(record.text, record.before)
                found.append(Example(utterance, record.labels, record.judged))
    return found
