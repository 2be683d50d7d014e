"""What the classifiers and the score are measured with, and answers to compare them with.

Among those is a test of conditional independence on sentence embeddings, which learns nothing:
the coordinates of the vectors of utterance, response and given utterance are taken as samples of
three numbers, which a test of a causal-discovery library can handle. It shows what the trained
classifiers add, and needs `pip install "causerie[discovery]"`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
    items_of,
    measured_triples,
)
from causerie.stats import auc, balanced_accuracy
from causerie.training.corpus import AnnotatedCorpus

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder, Floats
    from causerie.metrics.causalscore.classifier import Classifier, Classifiers

DRAWN = 5
"""Random responses for each true one: a single draw moves the AUC by a hundredth."""
TESTS = ("fisherz", "kci", "rcit")
"""Partial correlation by regression; a test with kernels, and one with random features, which are
about forty and ten times slower."""
SIGNIFICANT = 0.95
"""Dependent above it, as usual."""


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


def evaluation_examples(
    by: Classifiers, corpus: AnnotatedCorpus, seed: int, history: int | None = None
) -> dict[str, tuple[Classifier, list[Example]]]:
    """Both classifiers by their names, each with what it is measured with."""
    from causerie.metrics.causalscore.classifier import dependents

    items = items_of(corpus, history or by.history)
    found = dependents(by.unconditional, items)
    return {
        "C_uncond": (by.unconditional, Pairs(items, seed).epoch(0)),
        "C_cond": (by.conditional, measured_triples(items, found, seed)),
    }


def predict(by: Answers, examples: Sequence[Example], threshold: float = THRESHOLD) -> Answered:
    """What a classifier, or a test, answers to every example."""
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


class DiscoveryTest:
    """Answers with one minus the p-value of independence."""

    def __init__(self, encoder: Encoder, test: str = "fisherz") -> None:
        if test not in TESTS:
            raise CauserieError(f"the tests are {', '.join(TESTS)}, not {test!r}")
        try:
            from causallearn.utils.cit import CIT
        except ImportError as error:
            raise CauserieError(
                f"the test {test} is causal-learn's: pip install 'causerie[discovery]'"
            ) from error
        self._encoder, self._name = encoder, test
        self._test: Any = CIT

    def probabilities(self, questions: Sequence[Question]) -> Floats:
        texts = list(dict.fromkeys(text for question in questions for text in question.texts))
        vectors = self._encoder.encode([((text,),) for text in texts])
        place = {text: index for index, text in enumerate(texts)}
        return np.array(
            [
                1 - self._p_value(vectors[[place[text] for text in question.texts]])
                for question in questions
            ],
            dtype=np.float32,
        )

    def _p_value(self, vectors: Floats) -> float:
        """Of the first and the last being independent given what is between them."""
        data = vectors.T.astype(np.float64)
        given = list(range(1, data.shape[1] - 1))
        try:
            return float(self._test(data, self._name)(0, data.shape[1] - 1, given))
        except (ValueError, np.linalg.LinAlgError):
            return 1.0  # the given utterance says the same: nothing is left to depend on
