"""Evaluation of the classifiers and the score, and baselines for comparison.

One baseline is a test of conditional independence on sentence embeddings, which learns nothing:
the coordinates of the vectors of utterance, response and given utterance are taken as samples of
three variables for a test from a causal-discovery library. It shows what the trained classifiers
add, and needs `pip install "causerie[discovery]"`.
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
"""Number of random responses per true one: with a single one the AUC varies by a hundredth."""
TESTS = ("fisherz", "kci", "rcit")
"""Partial correlation by regression, a kernel test (about forty times slower), and a test with
random features (about ten times slower)."""
SIGNIFICANT = 0.95
"""Threshold on 1 - p, at the usual significance level."""


class Answers(Protocol):
    """Anything that returns the probability that a response depends on an utterance."""

    def probabilities(self, questions: Sequence[Question]) -> NDArray[np.float32]: ...


@dataclass(frozen=True, eq=False)
class Answered:
    """The score of each example and the decision on it."""

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
    """Return both classifiers by name, each with its evaluation examples."""
    from causerie.metrics.causalscore.classifier import dependents

    items = items_of(corpus, history or by.history)
    found = dependents(by.unconditional, items)
    return {
        "C_uncond": (by.unconditional, Pairs(items, seed).epoch(0)),
        "C_cond": (by.conditional, measured_triples(items, found, seed)),
    }


def predict(by: Answers, examples: Sequence[Example], threshold: float = THRESHOLD) -> Answered:
    """Return the answers of a classifier or a test to all examples."""
    scores = by.probabilities([example.question for example in examples]).astype(np.float64)
    return Answered(scores, scores > threshold)


def always_positive(examples: Sequence[Example]) -> Answered:
    """Return the answers of a baseline for which every utterance is a cause."""
    return Answered(np.ones(len(examples)), np.ones(len(examples), dtype=bool))


def position_only(examples: Sequence[Example]) -> Answered:
    """Return the answers of a baseline that knows only distances: the nearest is the cause."""
    distances = np.array([example.distance for example in examples], dtype=np.float64)
    return Answered(-distances, distances == 1)


def with_random_responses(source: Sequence[Annotation], seed: int) -> list[Exchange]:
    """Return each exchange with `DRAWN` responses of other conversations of the same file."""
    rng = random.Random(seed)
    by_conversation: dict[tuple[str, ...], list[str]] = {}
    for one in source:
        by_conversation.setdefault(one.conversation, []).append(one.exchange.response.text)
    if len(by_conversation) < 2:
        raise CauserieError("one conversation alone has no negatives: give more conversations")
    conversations = list(by_conversation)
    exchanges = []
    for one in source:
        others = [c for c in conversations if c != one.conversation]
        for _ in range(DRAWN):
            drawn = rng.choice(by_conversation[rng.choice(others)])
            exchanges.append(one.exchange.with_response(drawn))
    return exchanges


class DiscoveryTest:
    """Answers with 1 - p, where p is the p-value of a test of independence."""

    def __init__(self, encoder: Encoder, test: str = "fisherz") -> None:
        if test not in TESTS:
            raise CauserieError(f"test must be one of {', '.join(TESTS)}, not {test!r}")
        try:
            from causallearn.utils.cit import CIT
        except ImportError as error:
            raise CauserieError(
                f"the test {test} needs causal-learn: run `pip install 'causerie[discovery]'`"
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
        """Return the p-value that the first and the last are independent given those between."""
        data = vectors.T.astype(np.float64)
        given = list(range(1, data.shape[1] - 1))
        try:
            return float(self._test(data, self._name)(0, data.shape[1] - 1, given))
        except (ValueError, np.linalg.LinAlgError):
            return 1.0  # the given utterance has the same vector, so nothing is left to explain
