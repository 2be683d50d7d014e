"""What the classifiers and the score are measured with, and trivial answers to compare with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.io import Annotation
from causerie.metrics.causalscore.formula import THRESHOLD
from causerie.metrics.causalscore.questions import (
    Example,
    Pairs,
    Question,
    annotated_items,
    measured_triples,
)
from causerie.stats import auc, balanced_accuracy
from causerie.training.annotated import AnnotatedCorpus

if TYPE_CHECKING:
    from causerie.metrics.causalscore import CausalScore
    from causerie.metrics.causalscore.classifier import Classifier

DRAWN = 5
"""Random responses for each true one: a single draw moves the AUC by a hundredth."""


class Answers(Protocol):
    """Whatever says how sure it is that a response depends on an utterance."""

    def probabilities(self, questions: Sequence[Question]) -> NDArray[np.float32]: ...


@dataclass(frozen=True, eq=False)
class Answered:
    """How sure each example's answer is, and whether it is yes."""

    scores: NDArray[np.float64]
    decisions: NDArray[np.bool_]

    def measures(self, examples: Sequence[Example]) -> dict[str, float]:
        labels = [example.label for example in examples]
        return {
            "auc": auc(self.scores, labels),
            "balanced accuracy": balanced_accuracy(self.decisions, labels),
        }


def asked(
    metric: CausalScore, corpus: AnnotatedCorpus, seed: int
) -> dict[str, tuple[Classifier, list[Example]]]:
    """Both classifiers by their names, each with what it is measured with."""
    from causerie.metrics.causalscore.classifier import dependents

    items = annotated_items(corpus, metric.history)
    found = dependents(metric.unconditional, items)
    return {
        "C_uncond": (metric.unconditional, Pairs(items, seed).epoch(0)),
        "C_cond": (metric.conditional, measured_triples(items, found, seed)),
    }


def answered(by: Answers, examples: Sequence[Example], threshold: float = THRESHOLD) -> Answered:
    scores = by.probabilities([example.question for example in examples]).astype(np.float64)
    return Answered(scores, scores > threshold)


def always_positive(examples: Sequence[Example]) -> Answered:
    """Every utterance is a cause."""
    return Answered(np.ones(len(examples)), np.ones(len(examples), dtype=bool))


def position_only(examples: Sequence[Example]) -> Answered:
    """The nearer the likelier, and only the preceding utterance is a cause."""
    distances = np.array([example.distance for example in examples], dtype=np.float64)
    return Answered(-distances, distances == 1)


def with_random_responses(source: Sequence[Annotation], seed: int) -> list[Exchange]:
    """Each exchange answered with `DRAWN` responses of other conversations of the same file."""
    rng = random.Random(seed)
    by_conversation: dict[tuple[str, ...], list[str]] = {}
    for one in source:
        by_conversation.setdefault(one.conversation, []).append(one.exchange.response.text)
    if len(by_conversation) < 2:
        raise CauserieError("a single conversation has no others to draw responses from: give more")
    conversations = list(by_conversation)
    exchanges = []
    for one in source:
        others = [c for c in conversations if c != one.conversation]
        for _ in range(DRAWN):
            drawn = rng.choice(by_conversation[rng.choice(others)])
            exchanges.append(one.exchange.with_response(drawn))
    return exchanges
