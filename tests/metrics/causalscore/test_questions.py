"""What the classifiers learn from: every label, and that place is no hint where it must not be."""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.metrics.causalscore.questions import (
    Item,
    Pairs,
    PrecedingTwo,
    Question,
    Triples,
    annotated_items,
    measured_triples,
    triple,
    unlabelled_items,
)
from causerie.training.corpus import AnnotatedCorpus, Corpus

sys.path.insert(0, str(Path(__file__).parent))
from annotated_talks import TOPICS, write_annotations, write_dialogues


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> AnnotatedCorpus:
    folder = tmp_path_factory.mktemp("annotated")
    return AnnotatedCorpus.read([write_annotations(folder / f"{n}.jsonl", 40, n) for n in (1, 2)])


@pytest.fixture(scope="module")
def items(corpus: AnnotatedCorpus) -> list[Item]:
    return annotated_items(corpus, 5)


def test_items_are_windows(corpus: AnnotatedCorpus, items: list[Item]) -> None:
    for annotation, item in zip(corpus.annotations, items, strict=True):
        context = [turn.text for turn in annotation.exchange.context]
        assert list(item.utterances) == context[-5:]
        assert item.response == annotation.exchange.response.text
        first = max(0, len(context) - 5)
        assert item.causes == {cause - first for cause in annotation.causes if cause >= first}
        for cause in item.causes:
            assert topic(item.utterances[cause]) in item.response
        assert item.distance(len(item.utterances) - 1) == 1
    assert {item.source for item in items} == {0, 1}


def topic(text: str) -> str:
    (found,) = [t for t in TOPICS if t in text]
    return found


def test_questions_have_their_texts_in_order() -> None:
    assert Question("u", "r").texts == ("u", "r")
    assert Question("u", "r", "g").texts == ("u", "g", "r")


def test_pairs_are_causes_and_preceding_against_other_responses(items: list[Item]) -> None:
    pairs = Pairs(items, seed=0)
    examples = pairs.epoch(0)
    assert len(examples) == len(pairs)
    positives = Counter(e.question for e in examples if e.label)
    expected = Counter(
        Question(item.utterances[i], item.response)
        for item in items
        for i in item.causes | {len(item.utterances) - 1}
    )
    assert positives == expected
    negatives = [e for e in examples if not e.label]
    # the same utterances, so that they alone say nothing about the label
    assert Counter(e.question.utterance for e in negatives) == Counter(
        e.question.utterance for e in examples if e.label
    )
    assert Counter(e.distance for e in negatives) == Counter(
        e.distance for e in examples if e.label
    )
    said = {(item.response, item.conversation) for item in items}
    for example in negatives:
        others = {c for text, c in said if text == example.question.response}
        assert others - {example.conversation}
    assert pairs.epoch(0) == examples
    assert {e.question for e in pairs.epoch(1) if not e.label} != {e.question for e in negatives}


def test_more_responses_of_others(items: list[Item]) -> None:
    one, three = (Pairs(items, 0, others) for others in (1, 3))
    assert len(three) == 2 * len(one)
    drawn = Counter((example.question.utterance, example.label) for example in three.epoch(0))
    assert all(drawn[said, False] == 3 * drawn[said, True] for said, _ in drawn)
    assert len(three.epoch(0)) == len(three)


def test_a_single_conversation_has_no_negatives(items: list[Item]) -> None:
    with pytest.raises(CauserieError, match="file 1 has a single conversation"):
        Pairs([items[0], items[0]], seed=0)
    same = [replace(items[0], conversation=(name,)) for name in "ab"]
    with pytest.raises(CauserieError, match="all but the same"):
        Pairs(same, seed=0).epoch(0)


def test_triples_are_causes_against_non_causes_of_the_same_history(items: list[Item]) -> None:
    dependents = [tuple(range(len(item.utterances)))[-3:] for item in items]
    triples = Triples(items, dependents, seed=0)
    examples = triples.epoch(0)
    assert len(examples) == len(triples)
    by_response = {(item.response, item.conversation): item for item in items}
    found = {(i.response, i.conversation): d for i, d in zip(items, dependents, strict=True)}
    for example in examples:
        item = by_response[example.question.response, example.conversation]
        index = len(item.utterances) - example.distance
        assert item.utterances[index] == example.question.utterance
        assert (index in item.causes) == example.label
        given = item.utterances.index(str(example.question.given))
        assert given != index
        assert given in found[item.response, item.conversation]
    assert sum(e.label for e in examples) * 2 == len(examples)


def test_matched_negatives_stand_where_positives_do() -> None:
    rng = random.Random(0)
    items = [
        Item(
            tuple(f"{n}-{i}" for i in range(4)),
            f"{n}-r",
            frozenset({3}) if rng.random() < 0.7 else frozenset({rng.randrange(4)}),
            (str(n),),
            0,
        )
        for n in range(60)
    ]
    dependents = [(0, 1, 2, 3)] * len(items)

    def distances(matched: bool, label: bool) -> Counter[int]:
        examples = Triples(items, dependents, 0, matched=matched).epoch(0)
        return Counter(e.distance for e in examples if e.label is label)

    assert distances(True, True) == distances(True, False)
    assert distances(False, True) != distances(False, False)
    for example in Triples(items, dependents, 0, matched=True).epoch(0):
        item = items[int(example.conversation[0])]
        assert (4 - example.distance in item.causes) == example.label


def test_without_a_match_the_nearest_place_is_taken() -> None:
    """The preceding utterance is always the cause here: its match is the one before it."""
    items = [Item(("a", "b", "c"), f"r{n}", frozenset({2}), (str(n),), 0) for n in range(5)]
    examples = Triples(items, [(2,)] * 5, 0, matched=True).epoch(0)
    assert {e.distance for e in examples if not e.label} == {2}


def test_annotations_without_both_kinds_are_refused() -> None:
    all_causes = Item(("a", "b"), "r", frozenset({0, 1}), ("c",), 0)
    no_cause = Item(("a", "b"), "r", frozenset(), ("c",), 0)
    for item in (all_causes, no_cause):
        with pytest.raises(CauserieError, match="needs both"):
            Triples([item], [(0, 1)], 0)


def test_given_is_a_dependent_or_the_nearest_other() -> None:
    item = Item(("a", "b", "c"), "r", frozenset(), ("c",), 0)
    rng = random.Random(0)
    assert triple(item, 1, (0, 1), True, rng).question == Question("b", "r", "a")
    assert triple(item, 1, (1,), True, rng).question == Question("b", "r", "c")
    assert triple(item, 2, (), False, rng).question == Question("c", "r", "b")


def test_equal_texts_are_told_apart_by_place() -> None:
    item = Item(("Yes.", "Yes."), "r", frozenset({1}), ("c",), 0)
    early, late = measured_triples([item], [(0, 1)], seed=0)
    assert (early.label, late.label) == (False, True)
    assert (early.distance, late.distance) == (2, 1)
    assert early.question == late.question == Question("Yes.", "r", "Yes.")


def test_preceding_two(items: list[Item]) -> None:
    examples = PrecedingTwo(items, 0).epoch(0)
    assert len(examples) == 4 * len(items)
    last_two = {(i.response, i.conversation): set(i.utterances[-2:]) for i in items}
    for example in examples:
        two = {example.question.utterance, example.question.given}
        if example.label:
            assert two == last_two[example.question.response, example.conversation]
    negatives = [e for e in examples if not e.label]
    assert len(negatives) * 2 == len(examples)
    foreign = [
        e for e in negatives
        if e.question.utterance not in last_two[e.question.response, e.conversation]
    ]  # fmt: skip
    assert len(foreign) > 0.8 * len(negatives)


def test_measured_triples_are_every_utterance(items: list[Item]) -> None:
    examples = measured_triples(items, [()] * len(items), seed=0)
    assert len(examples) == sum(len(item.utterances) for item in items)
    assert sum(e.label for e in examples) == sum(len(item.causes) for item in items)


def test_unlabelled_items(tmp_path: Path) -> None:
    corpus = Corpus.read([write_dialogues(tmp_path / "d.jsonl", 10, 3)])
    items = unlabelled_items(corpus, history=3, exchanges=2, seed=0)
    assert len(items) == 20
    assert items == unlabelled_items(corpus, history=3, exchanges=2, seed=0)
    for item in items:
        assert 1 <= len(item.utterances) <= 3
        assert item.causes == {len(item.utterances) - 1}
    assert unlabelled_items(corpus, history=3, exchanges=0, seed=0) == []
