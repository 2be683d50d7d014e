"""Negatives: corrupted true responses, and lexical, embedding-based and random ones.

Attacks corrupt the true response; most keep much of it, so that the topic alone does not give
them away. The others come from another dialogue of the same source and differ in their words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.text import words
from causerie.training.corpus import Corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.encoder import Encoder
    from causerie.models import Pooling

POOL = 20_000
"""Number of random utterances from which embedding negatives are drawn."""
COMPARED = 1000
"""Number of utterances, drawn anew for every response, that are compared with it."""
NEAREST = 5
"""Number of nearest utterances from which one is drawn."""
TRIES = 64
AROUND = 1000
"""Number of hits around the median among which the nearest in length is chosen."""
CANDIDATES = 16
"""Number of candidates in a ranking item: one true response and 15 false ones."""

Attack: TypeAlias = Callable[[str, str, str, random.Random], str]
"""Corrupts a response, given the utterance before it, an unrelated response and an RNG."""

PERSONS = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself",
    "you": "I", "your": "my", "yours": "mine", "yourself": "myself",
    "he": "she", "she": "he", "his": "her", "her": "his", "him": "her",
    "we": "they", "they": "we", "our": "their", "their": "our", "us": "them", "them": "us",
}  # fmt: skip
NEGATED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "can": "can't",
    "could": "couldn't", "will": "won't", "would": "wouldn't", "do": "don't", "does": "doesn't",
    "did": "didn't", "have": "haven't", "has": "hasn't", "should": "shouldn't", "am": "am not",
    "yes": "no", "always": "never", "all": "none", "good": "bad", "like": "hate",
    "love": "hate", "right": "wrong", "sure": "not sure", "many": "few", "more": "less",
    "before": "after", "easy": "hard", "old": "new", "big": "small", "happy": "sad",
}  # fmt: skip
OPPOSITES = NEGATED | {denied: said for said, denied in NEGATED.items() if said != "love"}
DULL = (
    "I don't know.", "OK.", "That is nice.", "I see.", "I'm not sure.", "Sure.", "Yes.", "No.",
    "Okay, thanks.", "I think so.", "What do you mean?", "Sounds good.", "Really?", "Me too.",
    "I have no idea.", "Maybe.", "That's good.", "I don't think so.", "Oh, I see.", "Alright.",
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def repeat(response: str, last: str, other: str, rng: random.Random) -> str:
    """Repeat a part of the response."""
    words = response.split()
    start = rng.randrange(len(words))
    span = words[start : start + rng.randint(1, 4)]
    stop = start + len(span)
    return " ".join(words[:stop] + span * rng.randint(1, 4) + words[stop:])


def echo(response: str, last: str, other: str, rng: random.Random) -> str:
    """Repeat what the other speaker just said, with or without the response."""
    return rng.choice((last, f"{last} {response}", f"{response} {last}"))


def mix(response: str, last: str, other: str, rng: random.Random) -> str:
    """Continue the response with the end of an unrelated one."""
    ours, theirs = response.split(), other.split()
    return " ".join(ours[: max(1, len(ours) // 2)] + theirs[len(theirs) // 2 :])


def swap(response: str, last: str, other: str, rng: random.Random) -> str:
    """Replace longer words by those of an unrelated response."""
    theirs = [word for word in other.split() if len(word) > 3] or other.split()
    return " ".join(
        rng.choice(theirs) if len(word) > 3 and rng.random() < 0.5 else word
        for word in response.split()
    )


def shuffle(response: str, last: str, other: str, rng: random.Random) -> str:
    """Shuffle the words."""
    words = response.split()
    return " ".join(rng.sample(words, len(words)))


def persons(response: str, last: str, other: str, rng: random.Random) -> str:
    """Confuse grammatical persons."""
    return _replace(response, PERSONS)


def contradict(response: str, last: str, other: str, rng: random.Random) -> str:
    """Say the opposite."""
    return _replace(response, OPPOSITES)


def dull(response: str, last: str, other: str, rng: random.Random) -> str:
    """Say next to nothing."""
    return rng.choice(DULL)


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (repeat, echo, mix, swap, shuffle, persons, contradict, dull)
}


def corrupt(response: str, last: str, other: str, rng: random.Random) -> str:
    """Apply a random attack; return the unrelated response if it changes nothing."""
    changed = rng.choice(list(ATTACKS.values()))(response, last, other, rng)
    return changed if changed.strip() and changed != response else other


def corruptions(exchange: Exchange, other: str, rng: random.Random) -> dict[str, str]:
    """Return the result of each attack that changes the response, and the last turn itself."""
    response, last = exchange.response.text, exchange.last(1)[0].text
    made = {name: attack(response, last, other, rng) for name, attack in ATTACKS.items()}
    texts = {"the last turn": last, **made}
    return {name: text for name, text in texts.items() if text.strip() and text != response}


def _replace(text: str, words: dict[str, str]) -> str:
    def exchange(match: re.Match[str]) -> str:
        word = match[0]
        found = words.get(word.lower().replace("’", "'"), word)
        return found[0].upper() + found[1:] if word[0].isupper() and found != word else found

    return _WORD.sub(exchange, text)


Words: TypeAlias = tuple[str, ...] | str


@dataclass(frozen=True, eq=False)
class Utterances:
    """All utterances in the dialogues of one source."""

    texts: tuple[str, ...]
    words: tuple[Words, ...]
    """Words of each utterance, for comparing; the text itself if it has no words."""
    owners: tuple[int, ...]
    """`id()` of the dialogue of each utterance."""

    @classmethod
    def of(cls, dialogues: Sequence[Dialogue]) -> Utterances:
        said = [(turn.text, id(dialogue)) for dialogue in dialogues for turn in dialogue.turns]
        texts, owners = zip(*said, strict=True)
        return cls(texts, tuple(map(_words, texts)), owners)

    def is_false(self, place: int, exchange: Exchange) -> bool:
        """Whether an utterance is a false response to an exchange."""
        if self.owners[place] == id(exchange.dialogue) or not self.texts[place].strip():
            return False
        return self.words[place] != _words(exchange.response.text)


def random_negatives(
    said: Utterances, exchanges: Sequence[Exchange], seed: int
) -> list[str | None]:
    """Draw any false utterance for each exchange."""
    rng = random.Random(seed)
    found = []
    for exchange in exchanges:
        drawn = (rng.randrange(len(said.texts)) for _ in range(TRIES))
        place = next((place for place in drawn if said.is_false(place, exchange)), None)
        found.append(None if place is None else said.texts[place])
    return found


def lexical_negatives(
    said: Utterances, exchanges: Sequence[Exchange], *, length_matched: bool = False
) -> list[str | None]:
    """Return the median hit of a full-text search (BM25) for each response.

    If length-matched, return the nearest in length among the hits around the median.
    """
    import bm25s

    owners, lengths = np.array(said.owners), np.array([len(one) for one in said.words])
    numbers: dict[Words, int] = {}
    sayings = np.array([numbers.setdefault(one, len(numbers)) for one in said.words])
    index = bm25s.BM25()
    index.index([_tokens(one) for one in said.words], show_progress=False)
    found: list[str | None] = []
    for exchange in exchanges:
        own = _words(exchange.response.text)
        if isinstance(own, str):  # no words to search for
            found.append(None)
            continue
        scores = index.get_scores(list(own))
        false = (owners != id(exchange.dialogue)) & (sayings != numbers.get(own, -1))
        hits = np.flatnonzero((scores > 0) & false)
        near = hits[around_middle(scores[hits], AROUND if length_matched else 1)]
        nearest = near[np.abs(lengths[near] - len(own)).argmin()] if len(near) else None
        found.append(None if nearest is None else said.texts[nearest])
    return found


def around_middle(scores: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the indices of `count` scores around the median, unordered."""
    first = max(0, (len(scores) - count + 1) // 2)
    last = min(len(scores), first + count) - 1
    if last < first:
        return np.empty(0, dtype=np.intp)
    return np.argpartition(-scores, (first, last))[first : last + 1]


def embedding_negatives(
    said: Utterances,
    exchanges: Sequence[Exchange],
    encoder: Encoder,
    seed: int,
    *,
    length_matched: bool = False,
) -> list[str | None]:
    """Draw one of the five utterances nearest to each response among a thousand random ones.

    If length-matched, return the nearest in length of the five.
    """
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(said.texts))[:POOL]
    vectors = unit_vectors(encoder, [said.texts[place] for place in pool])
    responses = unit_vectors(encoder, [exchange.response.text for exchange in exchanges])
    found: list[str | None] = []
    for exchange, response in zip(exchanges, responses, strict=True):
        drawn = rng.choice(len(pool), size=min(COMPARED, len(pool)), replace=False)
        nearest: list[int] = []
        for one in drawn[np.argsort(-(vectors[drawn] @ response), kind="stable")]:
            if said.is_false(pool[one], exchange):
                nearest.append(int(pool[one]))
            if len(nearest) == NEAREST:
                break
        if length_matched:
            own = len(_words(exchange.response.text))
            nearest.sort(key=lambda place: abs(len(said.words[place]) - own))
            del nearest[1:]
        found.append(said.texts[rng.choice(nearest)] if nearest else None)
    return found


def neighbourhoods(
    vectors: NDArray[np.float32], size: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Return groups of at most `size` indices whose vectors are near each other.

    A group is halved until it is small enough, by which of two random members is nearer. Other
    draws give other groups, and each halving costs only a sort.
    """
    groups, waiting = [], [np.arange(len(vectors))]
    while waiting:
        group = waiting.pop()
        if len(group) <= size:
            groups.append(group)
            continue
        one, other = vectors[rng.choice(group, size=2, replace=False)]
        order = group[np.argsort(vectors[group] @ (one - other), kind="stable")]
        waiting += np.array_split(order, 2)
    return groups


def unit_vectors(
    encoder: Encoder, texts: Sequence[str], pooling: Pooling | None = None
) -> NDArray[np.float32]:
    """Return the unit-length vector of each text."""
    vectors = encoder.encode([((text,),) for text in texts], pooling)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return units


def _words(text: str) -> Words:
    return tuple(words(text)) or text


def _tokens(one: Words) -> list[str]:
    """Return tokens for the index, in which a text without words is an empty token."""
    return [""] if isinstance(one, str) else list(one)


def ranking_items(exchanges: Sequence[Exchange], seed: int) -> list[list[Exchange]]:
    """Return each exchange followed by 15 copies with responses from other dialogues.

    No response occurs twice, ignoring case, and none is empty. With too few dialogues to draw
    from, items have fewer candidates; exchanges without any are left out.
    """
    rng = random.Random(seed)
    items = []
    for exchange in exchanges:
        drawn: list[Exchange] = []
        there = {"", _plain(exchange.response.text)}
        for _ in range(4 * CANDIDATES):
            other = rng.choice(exchanges)
            text = other.response.text
            if other.dialogue is not exchange.dialogue and _plain(text) not in there:
                there.add(_plain(text))
                drawn.append(exchange.with_response(text))
            if len(drawn) == CANDIDATES - 1:
                break
        if drawn:
            items.append([exchange, *drawn])
    return items


def clusters_of(exchanges: Iterable[Exchange]) -> list[int]:
    """Return the dialogue of each exchange as a number, for clustered statistics."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(id(e.dialogue), len(numbers)) for e in exchanges]


def _plain(text: str) -> str:
    return text.casefold().strip()


def corpus_items(corpus: Corpus, count: int | None, seed: int) -> list[list[Exchange]]:
    """Return ranking items of `count` exchanges (None for all), with negatives of their source."""
    total = sum(len(d.turns) - 1 for d in corpus.dialogues)
    share = 1.0 if count is None else min(1.0, count / total)
    items = []
    for source in corpus.sources:
        exchanges = [exchange for dialogue in source for exchange in dialogue.exchanges()]
        drawn = random.Random(seed).sample(exchanges, max(1, round(share * len(exchanges))))
        items += ranking_items(drawn, seed)
    random.Random(seed).shuffle(items)
    if not items:
        raise CauserieError("one dialogue alone has no negatives: give more dialogues")
    return items
