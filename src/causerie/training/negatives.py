"""False responses: near the true one in words or in meaning, or drawn at random.

All are utterances of the same source as the response, of another dialogue, and say something
else. Each function gives one for every exchange, or None where there is none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie.dialogue import Dialogue, Exchange
from causerie.text import words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.encoder import Encoder

POOL = 20_000
"""Utterances, drawn at random, among which meanings are compared:"""
COMPARED = 1000
"""so many, drawn anew for every response,"""
NEAREST = 5
"""of which the nearest can be drawn."""
TRIES = 64
QUERIES_AT_ONCE = 256

Words: TypeAlias = tuple[str, ...] | str


@dataclass(frozen=True, eq=False)
class Utterances:
    """All that is said in the dialogues of one source."""

    texts: tuple[str, ...]
    words: tuple[Words, ...]
    """Two utterances with the same words say the same; a text without any is its own."""
    owners: tuple[int, ...]
    """By identity, the dialogue of each."""

    @classmethod
    def of(cls, dialogues: Sequence[Dialogue]) -> Utterances:
        said = [(turn.text, id(dialogue)) for dialogue in dialogues for turn in dialogue.turns]
        texts, owners = zip(*said, strict=True)
        return cls(texts, tuple(map(_words, texts)), owners)

    def is_false(self, place: int, exchange: Exchange) -> bool:
        """Whether an utterance would be a false response there."""
        if self.owners[place] == id(exchange.dialogue) or not self.texts[place].strip():
            return False
        return self.words[place] != _words(exchange.response.text)


def random_negatives(
    said: Utterances, exchanges: Sequence[Exchange], seed: int
) -> list[str | None]:
    """Any utterance."""
    rng = random.Random(seed)
    found = []
    for exchange in exchanges:
        drawn = (rng.randrange(len(said.texts)) for _ in range(TRIES))
        place = next((place for place in drawn if said.is_false(place, exchange)), None)
        found.append(None if place is None else said.texts[place])
    return found


def lexical_negatives(
    said: Utterances, exchanges: Sequence[Exchange], retrieved: int
) -> list[str | None]:
    """The middle one of those that a full-text search (BM25) for the response finds."""
    import bm25s

    index = bm25s.BM25()
    index.index([_tokens(one) for one in said.words], show_progress=False)
    # some of what is found is the response itself, or said in the same dialogue
    count = min(len(said.texts), 2 * retrieved)
    found: list[str | None] = []
    for start in range(0, len(exchanges), QUERIES_AT_ONCE):
        part = exchanges[start : start + QUERIES_AT_ONCE]
        queries = [_tokens(_words(exchange.response.text)) for exchange in part]
        places, scores = index.retrieve(queries, k=count, show_progress=False)
        for exchange, row, values in zip(part, places, scores, strict=True):
            near = [int(p) for p, value in zip(row, values, strict=True) if value > 0]
            false = [place for place in near if said.is_false(place, exchange)][:retrieved]
            found.append(said.texts[false[len(false) // 2]] if false else None)
    return found


def embedding_negatives(
    said: Utterances, exchanges: Sequence[Exchange], encoder: Encoder, seed: int
) -> list[str | None]:
    """One of the five nearest, by the encoder, of a thousand random utterances."""
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(said.texts))[:POOL]
    vectors = _units(encoder, [said.texts[place] for place in pool])
    responses = _units(encoder, [exchange.response.text for exchange in exchanges])
    found: list[str | None] = []
    for exchange, response in zip(exchanges, responses, strict=True):
        drawn = rng.choice(len(pool), size=min(COMPARED, len(pool)), replace=False)
        nearest: list[int] = []
        for one in drawn[np.argsort(-(vectors[drawn] @ response), kind="stable")]:
            if said.is_false(pool[one], exchange):
                nearest.append(int(pool[one]))
            if len(nearest) == NEAREST:
                break
        found.append(said.texts[rng.choice(nearest)] if nearest else None)
    return found


def _units(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    vectors = encoder.encode([((text,),) for text in texts])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return units


def _words(text: str) -> Words:
    return tuple(words(text)) or text


def _tokens(one: Words) -> list[str]:
    """For the index, which knows a text without words as an empty one."""
    return [""] if isinstance(one, str) else list(one)
