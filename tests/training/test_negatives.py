"""False responses: where they come from, and what they never are."""

from __future__ import annotations

import random
from collections import Counter
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
        "lexical": lambda: lexical_negatives(said, exchanges, 10),
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


def test_the_lexical_one_is_the_middle_of_what_is_found(
    said: Utterances, exchanges: list[Exchange]
) -> None:
    """BM25 written out (Robertson's idf as in Lucene, k1 1.5, b 0.75), document by document."""
    texts = [words(text) for text in said.texts]
    documents = [Counter(text) for text in texts]
    mean = np.mean([max(1, len(text)) for text in texts])
    counts = Counter(word for document in documents for word in document)

    def bm25(query: list[str], place: int) -> float:
        score = 0.0
        for word in query:
            f = documents[place][word]
            if f:
                idf = np.log(1 + (len(texts) - counts[word] + 0.5) / (counts[word] + 0.5))
                score += idf * f / (f + 1.5 * (1 - 0.75 + 0.75 * len(texts[place]) / mean))
        return score

    asked = exchanges[:25]
    for exchange, text in zip(asked, lexical_negatives(said, asked, 9), strict=True):
        query = words(exchange.response.text)
        scores = sorted(
            (
                round(bm25(query, place), 4)
                for place in range(len(texts))
                if said.is_false(place, exchange) and bm25(query, place) > 0
            ),
            reverse=True,
        )
        assert text is not None
        # several have the same score: which of them is the middle one is open
        own = {round(bm25(query, p), 4) for p, one in enumerate(said.texts) if one == text}
        assert min(abs(score - scores[4]) for score in own) < 2e-3


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
    assert lexical_negatives(alone, exchanges, 10) == [None] * 3
    assert embedding_negatives(alone, exchanges, encoder, 0) == [None] * 3
