"""Negatives: where they are drawn from, and that they are never true responses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.text import words
from causerie.training.negatives import (
    NEAREST,
    Utterances,
    embedding_negatives,
    lexical_negatives,
    random_negatives,
)

THINGS = ("pizza", "guitar", "lake", "film", "book", "shop", "mother", "weather")
WORDS = ("great", "cold", "long", "small", "old", "favourite", "wet", "fine")


@pytest.fixture(scope="module")
def dialogues() -> list[Dialogue]:
    rng = random.Random(0)

    def text() -> str:
        return f"The {rng.choice(WORDS)} {rng.choice(THINGS)} and the {rng.choice(THINGS)}."

    made = [Dialogue(str(n), tuple(Turn("AB"[i % 2], text()) for i in range(4))) for n in range(40)]
    odd = Dialogue("odd", (Turn("A", "Hello?"), Turn("B", "🙂"), Turn("A", "🙂 🙂")))
    return [*made, odd]


@pytest.fixture(scope="module")
def said(dialogues: list[Dialogue]) -> Utterances:
    return Utterances.of(dialogues)


@pytest.fixture(scope="module")
def exchanges(dialogues: list[Dialogue]) -> list[Exchange]:
    return [exchange for dialogue in dialogues for exchange in dialogue.exchanges()]


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> Encoder:
    return Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1)).encoder


@pytest.mark.parametrize("kind", ["lexical", "embedding", "random"])
def test_a_false_response_is_of_another_dialogue_and_says_something_else(
    kind: str, said: Utterances, exchanges: list[Exchange], encoder: Encoder
) -> None:
    found = {
        "lexical": lambda: lexical_negatives(said, exchanges),
        "embedding": lambda: embedding_negatives(said, exchanges, encoder, 0),
        "random": lambda: random_negatives(said, exchanges, 0),
    }[kind]()
    assert len(found) == len(exchanges)
    owners: dict[str, set[int]] = {}
    for text, owner in zip(said.texts, said.owners, strict=True):
        owners.setdefault(text, set()).add(owner)
    for exchange, text in zip(exchanges, found, strict=True):
        if text is None:
            assert kind == "lexical"
            assert not words(exchange.response.text)  # nothing to search for
            continue
        assert owners[text] - {id(exchange.dialogue)}
        assert text != exchange.response.text
        assert words(text) != words(exchange.response.text)


@pytest.fixture(scope="module")
def bm25(said: Utterances) -> Callable[[Exchange], dict[int, float]]:
    """BM25 written out (Robertson's idf as in Lucene, k1 1.5, b 0.75), document by document.

    The score of every utterance that is a false response and has a word of the true one.
    """
    texts = [words(text) for text in said.texts]
    documents = [Counter(text) for text in texts]
    mean = np.mean([max(1, len(text)) for text in texts])
    counts = Counter(word for document in documents for word in document)

    def score(query: list[str], place: int) -> float:
        total = 0.0
        for word in query:
            f = documents[place][word]
            if f:
                idf = np.log(1 + (len(texts) - counts[word] + 0.5) / (counts[word] + 0.5))
                total += idf * f / (f + 1.5 * (1 - 0.75 + 0.75 * len(texts[place]) / mean))
        return total

    def scores(exchange: Exchange) -> dict[int, float]:
        query = words(exchange.response.text)
        found = {place: score(query, place) for place in range(len(texts))}
        return {p: s for p, s in found.items() if s > 0 and said.is_false(p, exchange)}

    return scores


def test_the_lexical_one_is_the_middle_of_all_that_is_found(
    said: Utterances,
    exchanges: list[Exchange],
    bm25: Callable[[Exchange], dict[int, float]],
) -> None:
    asked = exchanges[:25]
    for exchange, text in zip(asked, lexical_negatives(said, asked), strict=True):
        found = bm25(exchange)
        scores = sorted(found.values(), reverse=True)
        assert len(scores) > 100  # nearly all of them have "the"
        # several have the same score: which of them is the middle one is open
        own = [score for place, score in found.items() if said.texts[place] == text]
        assert min(abs(score - scores[len(scores) // 2]) for score in own) < 1e-3


def test_length_matched_it_is_the_nearest_in_length_of_those_around_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores of hits decrease with their length here: `a` and 2 to 30 other words."""
    monkeypatch.setattr("causerie.training.negatives.AROUND", 5)
    true = Dialogue("true", (Turn("A", "Hi"), Turn("B", "a x y")))
    others = [Dialogue(str(n), (Turn("A", "a" + n * " b"), Turn("B", "Bye"))) for n in range(2, 31)]
    said, asked = Utterances.of([true, *others]), true.exchanges()
    # the middle one of 29 has 16 others; two ranks to either side, the shortest has 14
    assert lexical_negatives(said, asked) == ["a" + 16 * " b"]
    assert lexical_negatives(said, asked, length_matched=True) == ["a" + 14 * " b"]


def test_length_matched_the_embedding_one_is_the_nearest_in_length_of_the_five(
    said: Utterances, exchanges: list[Exchange], encoder: Encoder
) -> None:
    asked = exchanges[:20]
    vectors = encoder.encode([((text,),) for text in said.texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = embedding_negatives(said, asked, encoder, 0, length_matched=True)
    for exchange, text in zip(asked, found, strict=True):
        assert text is not None
        own = vectors[said.texts.index(exchange.response.text)]
        near = [p for p in np.argsort(-(vectors @ own)) if said.is_false(p, exchange)][:NEAREST]
        length = len(words(exchange.response.text))
        best = min(abs(len(words(said.texts[place])) - length) for place in near)
        assert abs(len(words(text)) - length) == best


def test_the_embedding_one_is_among_the_nearest(
    said: Utterances, exchanges: list[Exchange], encoder: Encoder
) -> None:
    vectors = encoder.encode([((text,),) for text in said.texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = exchanges[:20]
    found = embedding_negatives(said, asked, encoder, 0)
    # there are fewer than a thousand utterances: all are compared
    for exchange, text in zip(asked, found, strict=True):
        own = vectors[said.texts.index(exchange.response.text)]
        near = [p for p in np.argsort(-(vectors @ own)) if said.is_false(p, exchange)]
        assert text in [said.texts[place] for place in near[:NEAREST]]
    assert embedding_negatives(said, asked, encoder, 1) != found
    assert embedding_negatives(said, asked, encoder, 0) == found


def test_random_ones_are_anything(said: Utterances, exchanges: list[Exchange]) -> None:
    drawn = {text for seed in range(20) for text in random_negatives(said, exchanges, seed)}
    assert drawn == set(said.texts)


def test_a_single_dialogue_has_none(dialogues: list[Dialogue], encoder: Encoder) -> None:
    alone = Utterances.of(dialogues[:1])
    exchanges = dialogues[0].exchanges()
    assert random_negatives(alone, exchanges, 0) == [None] * 3
    assert lexical_negatives(alone, exchanges) == [None] * 3
    assert embedding_negatives(alone, exchanges, encoder, 0) == [None] * 3
