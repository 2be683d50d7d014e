"""Training examples: every label, and that distance does not predict labels where it must not."""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.metrics.causalscore.questions import (
    REPEATED,
    Item,
    Pairs,
    PrecedingTwo,
    Question,
    Triples,
    items_of,
    measured_triples,
    triple,
    unlabelled,
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
    return items_of(corpus, 5)


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
    with pytest.raises(CauserieError, match="nearly identical"):
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


def test_matched_negatives_weigh_what_positives_do_wherever_they_stand() -> None:
    """With 1 non-cause and 59 causes at a distance, both labels have the same total weight."""
    rng = random.Random(0)
    items = [
        Item(
            tuple(f"{n}-{i}" for i in range(4)),
            f"{n}-r",
            frozenset({3}) if n else frozenset({rng.randrange(3)}),
            (str(n),),
            0,
        )
        for n in range(60)
    ]
    items += [replace(items[5], causes=frozenset({1, 2, 3})), replace(items[6], source=1)]
    triples = Triples(items, [(0, 1, 2, 3)] * len(items), 0, matched=True)
    examples = triples.epoch(0)
    assert len(examples) == len(triples)
    assert max(Counter((e.question.utterance, e.conversation) for e in examples).values()) <= 2
    weights: dict[tuple[int, bool], float] = {}
    for example in examples:
        key = example.distance, example.label
        weights[key] = weights.get(key, 0.0) + example.weight
    for distance in {distance for distance, _ in weights}:
        assert weights[distance, True] == pytest.approx(weights[distance, False])
    assert sum(e.weight for e in examples) == pytest.approx(len(examples))
    near = {e.label: e.weight for e in examples if e.distance == 1}
    assert near[False] == pytest.approx(60 * near[True])  # 60 causes, one non-cause
    # the file with one exchange has no distance with both kinds
    assert not any(e.weight == 1.0 and e.conversation == ("6",) for e in examples)


def test_no_text_is_drawn_more_than_a_few_times() -> None:
    causes = frozenset(range(1, 9))
    item = Item(tuple("abcdefghi"), "r", causes, ("c",), 0)
    triples = Triples([item], [tuple(range(9))], 0)
    examples = triples.epoch(0)
    assert len(examples) == len(triples)
    assert [e.question.utterance for e in examples if not e.label] == ["a"] * REPEATED
    assert sum(e.label for e in examples) == 8
    two = replace(item, causes=frozenset(range(4, 9)))
    drawn = [e.question.utterance for e in Triples([two], [(8,)], 0).epoch(0) if not e.label]
    assert max(Counter(drawn).values()) == 2  # four non-causes for five causes: each, then one more
    assert len(set(drawn)) == 4


def test_annotations_without_both_kinds_are_refused() -> None:
    all_causes = Item(("a", "b"), "r", frozenset({0, 1}), ("c",), 0)
    no_cause = Item(("a", "b"), "r", frozenset(), ("c",), 0)
    for item in (all_causes, no_cause):
        with pytest.raises(CauserieError, match="needs both"):
            Triples([item], [(0, 1)], 0)


def test_given_is_a_dependent_or_the_nearest_other() -> None:
    item = Item(("a", "b", "c"), "r", frozenset(), ("c",), 0)
    rng = random.Random(0)
    assert triple(item, 1, (0, 1), True, rng).question == Question("b", "r", "a", (2, 3))
    assert triple(item, 1, (1,), True, rng).question == Question("b", "r", "c", (2, 1))
    assert triple(item, 2, (), False, rng).question == Question("c", "r", "b", (1, 2))


def test_equal_texts_are_told_apart_by_place() -> None:
    item = Item(("Yes.", "Yes."), "r", frozenset({1}), ("c",), 0)
    early, late = measured_triples([item], [(0, 1)], seed=0)
    assert (early.label, late.label) == (False, True)
    assert (early.distance, late.distance) == (2, 1)
    assert early.question == Question("Yes.", "r", "Yes.", (2, 1))
    assert late.question == Question("Yes.", "r", "Yes.", (1, 2))


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


def test_unlabelled_exchanges(tmp_path: Path) -> None:
    corpus = Corpus.read([write_dialogues(tmp_path / "d.jsonl", 10, 3)])
    drawn = unlabelled(corpus, None, exchanges=2, seed=0)
    assert len(drawn) == 20
    assert drawn == unlabelled(corpus, None, exchanges=2, seed=0)
    for item in items_of(drawn, history=3):
        assert 2 <= len(item.utterances) <= 3
        assert item.causes == {len(item.utterances) - 1}
    whole = items_of(drawn, history=None)
    turns = [one.exchange.turn for one in drawn.annotations]
    assert [len(item.utterances) for item in whole] == turns
    assert len(unlabelled(corpus, 4, exchanges=1, seed=0)) == 4
    assert len(unlabelled(corpus, None, exchanges=0, seed=0)) == 0
    assert {item.source for item in items_of(drawn, 3, first_source=7)} == {7}


def test_an_utterance_is_no_response_to_itself(items: list[Item]) -> None:
    pairs, plain = Pairs(items, 0, said=True), Pairs(items, 0)
    assert len(pairs.epoch(0)) == len(pairs) == len(plain) // 2 * 3
    echoes = [e for e in pairs.epoch(0) if e.question.utterance == e.question.response]
    assert len(echoes) == len(plain) // 2
    assert not any(e.label for e in echoes)
