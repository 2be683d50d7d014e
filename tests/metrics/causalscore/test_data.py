"""Weak labels: which utterance a response answers, on data for which it is known."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.io import Annotation
from causerie.metrics.causalscore.data import LIKELY, Alignment
from causerie.metrics.causalscore.questions import Item, Question
from causerie.training.corpus import AnnotatedCorpus


class Told:
    """Returns the probability that is written in the utterance."""

    def probabilities(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([float(q.utterance) for q in questions], dtype=np.float32)


def item(*p: float) -> Item:
    return Item(tuple(map(str, p)), "r", frozenset(), ("c",), 0)


def test_shares_are_those_of_the_answered_utterances() -> None:
    """If C_uncond is nearly certain, shares are counts: 70 answer the last, 30 the one before."""
    rng = random.Random(0)
    items = [item(0.01, 0.01, 0.99) for _ in range(70)]
    items += [item(0.01, 0.99, 0.01) for _ in range(30)]
    rng.shuffle(items)
    shares = Alignment.learn(Told(), items).shares
    assert shares == pytest.approx((0.7, 0.3, 0.0), abs=0.01)


def test_chances_are_shares_times_odds() -> None:
    (found,) = Alignment((0.75, 0.25)).chances(Told(), [item(0.9, 0.5)])
    # odds 9 and 1, the older first: 0.25 * 9 against 0.75 * 1
    assert found.tolist() == pytest.approx([2.25 / 3, 0.75 / 3], rel=1e-4)
    (found,) = Alignment((0.75, 0.25)).chances(Told(), [item(0.9, 0.9, 0.5)])
    assert found[0] == 0  # farther than any that was learned from


def test_likely_utterances_become_causes() -> None:
    turns = tuple(Turn("AB"[n % 2], text) for n, text in enumerate(("0.5", "0.9", "0.5", "r")))
    one = Annotation(Exchange(Dialogue("d", turns), 3), frozenset({2}))
    corpus = AnnotatedCorpus(((one,), (one, one)))
    labelled = Alignment((0.9, 0.09, 0.01)).label(Told(), corpus, None)
    # chances 0.9, 0.81 and 0.01 of 1.72 in all
    assert LIKELY < 0.81 / 1.72
    assert [a.causes for a in labelled.annotations] == [frozenset({1, 2})] * 3
    assert [len(source) for source in labelled.sources] == [1, 2]
    near = Alignment((0.9, 0.09, 0.01)).label(Told(), corpus, 2)
    assert near.annotations[0].causes == {1, 2}
