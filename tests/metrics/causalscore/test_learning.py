"""Algorithm 1 with a classifier whose answers the test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from causerie.metrics.causalscore.config import CausalScoreConfig
from causerie.metrics.causalscore.learning import (
    Round,
    confident,
    self_train,
    unlabelled_triples,
)
from causerie.metrics.causalscore.measure import (
    always_positive,
    position_only,
    predict,
)
from causerie.metrics.causalscore.questions import Example, Item, Question, TrainingSet


class Told:
    """Answers with the number in the utterance; its only weight counts its trainings."""

    def __init__(self) -> None:
        self.head = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.head.weight)
        self.encoder = SimpleNamespace(model=nn.Identity(), forget=lambda: None)

    def probabilities(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([float(q.utterance) for q in questions], dtype=np.float32)


class Given(TrainingSet):
    def __init__(self, pseudo: Sequence[Example]) -> None:
        super().__init__(0)
        self.pseudo = list(pseudo)

    def __len__(self) -> int:
        return 10 + len(self.pseudo)

    def draw(self, rng: Any) -> list[Example]:
        return list(self.pseudo)


def example(p: float, label: bool = False) -> Example:
    return Example(Question(str(p), "r", "g"), label, 2, ("c",))


def ps(examples: Sequence[Example]) -> list[float]:
    return [float(e.question.utterance) for e in examples]


def test_the_surest_become_positives_and_as_many_become_negatives() -> None:
    unlabelled = [example(p) for p in (0.95, 0.2, 0.91, 0.9, 0.6, 0.1, 0.45)]
    positives, negatives, left = confident(Told(), unlabelled, 0.9)  # type: ignore[arg-type]
    assert ps(positives) == [0.95, 0.91]
    assert ps(negatives) == [0.2, 0.1]
    assert ps(left) == [0.9, 0.6, 0.45]
    assert all(e.label for e in positives)
    assert not any(e.label for e in negatives)


def test_no_more_positives_than_negatives_can_balance() -> None:
    unlabelled = [example(p) for p in (0.95, 0.99, 0.97, 0.6, 0.3)]
    positives, negatives, left = confident(Told(), unlabelled, 0.9)  # type: ignore[arg-type]
    assert (ps(positives), ps(negatives)) == ([0.99], [0.3])
    assert len(left) == 3
    assert confident(Told(), [example(0.95)], 0.9)[0] == []  # type: ignore[arg-type]
    assert confident(Told(), [], 0.9) == ([], [], [])  # type: ignore[arg-type]


def run(aucs: list[float], rounds: int, unlabelled: list[Example]) -> tuple[Told, list[Round], Any]:
    classifier, log, trained = Told(), [], []

    def fit(number: int, examples: TrainingSet) -> dict[str, float]:
        with torch.no_grad():
            classifier.head.weight += 1
        trained.append(ps(examples.epoch(0)))
        return {"auc": aucs[number], "balanced accuracy": 0.5}

    config = replace(CausalScoreConfig(), rounds=rounds)
    self_train(classifier, Given, unlabelled, config, fit, log.append)  # type: ignore[arg-type]
    return classifier, log, trained


UNLABELLED = [example(p) for p in (0.99, 0.98, 0.97, 0.05, 0.6)]


def test_stops_when_validation_does_and_keeps_the_best() -> None:
    classifier, log, trained = run([0.6, 0.7, 0.65, 0.9], 5, UNLABELLED * 2)
    # round 1 takes two positives (two negatives to balance them); nothing is left for round 2
    assert [(r.round, r.positives, r.negatives, r.kept) for r in log] == [
        (0, 0, 0, True),
        (1, 2, 2, True),
    ]
    assert [r.auc for r in log] == [0.6, 0.7]
    assert [r.examples for r in log] == [10, 14]
    assert trained[0] == []
    assert sorted(trained[1]) == [0.05, 0.05, 0.99, 0.99]
    assert classifier.head.weight.item() == 2


def test_a_worse_round_is_dropped() -> None:
    classifier, log, _ = run([0.6, 0.55, 0.9], 5, UNLABELLED)
    assert [r.kept for r in log] == [True, False]
    assert classifier.head.weight.item() == 1


def test_pseudo_labels_add_up_over_rounds() -> None:
    class Surer(Told):
        """Becomes confident of the examples of which it was not."""

        def probabilities(self, questions: Sequence[Question]) -> np.ndarray:
            p = super().probabilities(questions)
            return p if self.head.weight.item() < 2 else np.where(p > 0.5, 0.95, 0.1)

    classifier, log, sizes = Surer(), [], []

    def fit(number: int, examples: TrainingSet) -> dict[str, float]:
        with torch.no_grad():
            classifier.head.weight += 1
        sizes.append(len(examples))
        return {"auc": 0.5 + number / 10, "balanced accuracy": 0.5}

    unlabelled = [example(p) for p in (0.95, 0.1, 0.8, 0.4, 0.7, 0.3)]
    config = replace(CausalScoreConfig(), rounds=9)
    self_train(classifier, Given, unlabelled, config, fit, log.append)  # type: ignore[arg-type]
    assert [(r.positives, r.negatives) for r in log] == [(0, 0), (1, 1), (2, 2)]
    assert sizes == [10, 12, 16]


def test_no_rounds_is_no_self_training() -> None:
    classifier, log, _ = run([0.6], 0, UNLABELLED)
    assert [r.round for r in log] == [0]
    assert classifier.head.weight.item() == 1


def test_only_the_second_and_third_last_are_self_trained() -> None:
    items = [
        Item(tuple("abcde"), "r", frozenset({4}), ("1",), 0),
        Item(("x",), "s", frozenset({0}), ("2",), 0),
        Item(("y", "z"), "t", frozenset({1}), ("3",), 0),
    ]
    found = unlabelled_triples(items, [(0, 4), (0,), ()], seed=0)
    assert [(e.question.utterance, e.distance) for e in found] == [("d", 2), ("c", 3), ("y", 2)]
    assert {e.question.given for e in found[:2]} <= {"a", "e"}
    assert found[2].question.given == "z"


def test_trivial_answers() -> None:
    labels = (False, True, False, True)
    examples = [
        Example(Question(str(p), "r"), label, distance, ("c",))
        for p, label, distance in zip((0.9, 0.8, 0.5, 0.6), labels, (1, 1, 2, 3), strict=True)
    ]
    assert always_positive(examples).measures(examples) == {"auc": 0.5, "balanced accuracy": 0.5}
    # causes at 1 and 3, others at 1 and 2
    assert position_only(examples).measures(examples)["auc"] == pytest.approx((0.5 + 1 + 0 + 0) / 4)
    assert position_only(examples).decisions.tolist() == [True, True, False, False]
    told = predict(Told(), examples)
    assert told.decisions.tolist() == [True, True, False, True]  # 0.5 is not above
    assert told.measures(examples)["balanced accuracy"] == pytest.approx((1 + 0.5) / 2)
