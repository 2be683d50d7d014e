"""Faulty replies made from good ones, from which `faults` and `slips` learn.

Every maker turns a good reply into one with a fault that people would name: off topic, an echo,
a contradiction... Replies that only look faulty count as good: a short "yes" to a yes-no
question, a greeting that returns a greeting.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from causerie.dialogue import Dialogue, Exchange
from causerie.text import words
from causerie.text.lexical import FUNCTION_WORDS
from causerie.training.negatives import ATTACKS, DULL, PERSONS

FAULTS: Final = (
    "off_topic",
    "ignores_question",
    "echo",
    "self_repetition",
    "contradiction",
    "dull",
    "not_fluent",
    "wrong_speaker",
    "gibberish",
)
MEANINGS: Final = {
    "off_topic": "has nothing to do with what was said",
    "ignores_question": "does not answer the question that was asked",
    "echo": "says again what was said before",
    "self_repetition": "repeats itself",
    "contradiction": "contradicts what was said",
    "dull": "says next to nothing",
    "not_fluent": "is not fluent English",
    "wrong_speaker": "speaks as the other speaker, or mistakes I and you",
    "gibberish": "makes no sense as language",
}
COMMON = 20
"""A short reply that occurs at least this often in a corpus is dull."""
DULL_WORDS = 5
"""A reply with more words is not dull, however often it occurs."""
FAR = 6
"""Turns of a dialogue that are at least this far apart do not answer each other."""

_AUXILIARY = re.compile(
    r"\b(am|is|are|was|were|can|could|will|would|do|does|did|have|has|should)\b(?! not|n't)"
)
_VERB = re.compile(
    r"\b(I|i|we|We|they|They|you|You) (like|love|want|think|live|work|play|know|eat)"
)
_NUMBER = re.compile(r"\b\d+\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ENDINGS = ("s", "ed", "ing", "er")


@dataclass(frozen=True, slots=True)
class Faulty:
    """A reply with its faults."""

    text: str
    faults: frozenset[str]
    unclear: frozenset[str] = frozenset()
    """Faults that it may or may not have: nothing is learned about them."""


GOOD = frozenset[str]()
Maker: TypeAlias = "Callable[[Exchange, Replies, random.Random], Faulty | None]"


class Replies:
    """All replies of one source, from which other people's words and dull replies are drawn."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self.dialogues = dialogues

    def other(self, exchange: Exchange, rng: random.Random) -> str:
        """Draw a reply from another dialogue."""
        while True:
            dialogue = rng.choice(self.dialogues)
            text = rng.choice(dialogue.turns[1:]).text
            if dialogue is not exchange.dialogue and words(text) != words(exchange.response.text):
                return text

    @cached_property
    def dull(self) -> tuple[str, ...]:
        """Dull replies: a stock list and the frequent short replies of the corpus."""
        counted = Counter(
            turn.text.strip()
            for dialogue in self.dialogues
            for turn in dialogue.turns
            if len(turn.text) < 40 and 0 < len(words(turn.text)) <= DULL_WORDS
        )
        often = (text for text, count in counted.items() if count >= COMMON and "?" not in text)
        return tuple(dict.fromkeys((*DULL, *often)))

    @cached_property
    def _dull_words(self) -> frozenset[tuple[str, ...]]:
        return frozenset(tuple(words(text)) for text in self.dull)

    def is_dull(self, context: str, reply: str) -> bool:
        """Whether a reply says next to nothing although more is called for."""
        return tuple(words(reply)) in self._dull_words and not _asks_whether(context)


def off_topic(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty:
    """Return what somebody said in another conversation."""
    faults = {"off_topic"} | ({"ignores_question"} if "?" in _last(exchange) else GOOD)
    return Faulty(replies.other(exchange, rng), frozenset(faults))


def ignores_question(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Answer a question with what the same speaker says elsewhere in the conversation."""
    turns, here = exchange.dialogue.turns, exchange.turn
    if "?" not in _last(exchange):
        return None
    far = [
        turn.text
        for place, turn in enumerate(turns)
        if place - here >= FAR and turn.speaker == exchange.response.speaker and turn.text
    ]
    if not far:
        return None
    return Faulty(
        rng.choice(far), frozenset({"ignores_question"}), frozenset({"off_topic", "dull"})
    )


def echo(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Repeat an earlier turn, whole or nearly so, alone or with the reply."""
    turns = [turn.text for turn in exchange.last(5)]
    back = rng.choice((1, 1, 2, 2, 3, 4))
    if back > len(turns):
        return None
    said, reply = turns[-back], exchange.response.text
    if len(words(said)) < 3 or words(said) == words(reply):
        return None
    if rng.random() < 0.3:  # with a word lost here and there
        said = " ".join(word for word in said.split() if rng.random() > 0.1) or said
    faults = {"echo", "wrong_speaker"} if back % 2 else {"echo"}
    text = rng.choice((said, said, f"{said} {reply}", f"{reply} {said}"))
    return Faulty(text, frozenset(faults), frozenset({"ignores_question", "contradiction"}))


def self_repetition(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty:
    """Repeat a part of the reply."""
    said = exchange.response.text.split()
    start = rng.randrange(len(said))
    span = said[start : start + rng.randint(1, 8)]
    stop, times = start + len(span), rng.randint(1, 4)
    if len(span) < 3:
        times += 1  # "very very" is not a fault
    parts = _SENTENCE_END.split(exchange.response.text)
    if len(parts) > 1 and rng.random() < 0.4:
        text = " ".join([*parts, rng.choice(parts)])
    elif rng.random() < 0.2:
        text = " ".join([exchange.response.text] * rng.randint(2, 3))
    else:
        text = " ".join(said[:stop] + span * times + said[stop:])
    return Faulty(text, frozenset({"self_repetition"}), frozenset({"not_fluent", "gibberish"}))


def contradiction(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Say the opposite of what was said, or change its names and numbers."""
    own = [
        turn.text
        for turn in exchange.last(8)
        if turn.speaker == exchange.response.speaker and len(words(turn.text)) > 3
    ]
    reply = exchange.response.text
    unclear = frozenset({"off_topic", "ignores_question", "echo"})
    if own and rng.random() < 0.6:
        sentences = [part for part in _SENTENCE_END.split(rng.choice(own)) if "?" not in part]
        denied = _denied(rng.choice(sentences), rng) if sentences else None
        if denied:
            text = rng.choice((denied, denied, f"{denied} {reply}"))
            return Faulty(text, frozenset({"contradiction"}), unclear)
    swapped = _swapped(reply, replies.other(exchange, rng), rng)
    text = swapped or _denied(reply, rng) or ""
    unclear |= {"not_fluent"}
    return Faulty(text, frozenset({"contradiction"}), unclear) if text else None


def dull(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Say next to nothing although more is called for."""
    if _asks_whether(_last(exchange)):
        return None
    text = rng.choice(replies.dull)
    unclear = {"ignores_question", "off_topic"}
    return Faulty(text, frozenset({"dull"}), frozenset(unclear))


def not_fluent(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Reorder, inflect, drop or replace words."""
    said = exchange.response.text.split()
    if len(said) < 4:
        return None
    slips = max(1, round(len(said) * rng.uniform(0.12, 0.5)))
    for _ in range(slips):
        place = rng.randrange(len(said))
        kind = rng.randrange(5)
        word = said[place]
        if kind == 0 and place + 1 < len(said):
            said[place], said[place + 1] = said[place + 1], word
        elif kind == 1 and len(said) > 3:
            functional = [i for i, w in enumerate(said) if w.lower() in FUNCTION_WORDS]
            del said[rng.choice(functional or [place])]
        elif kind == 2 and word.isalpha():
            said[place] = _inflected(word, rng)
        elif kind == 3:
            said[place] = rng.choice(replies.other(exchange, rng).split())
        else:
            pronouns = [i for i, w in enumerate(said) if w.lower() in PERSONS]
            if pronouns:
                said[rng.choice(pronouns)] = rng.choice(("me", "him", "her", "them", "us", "its"))
    text = " ".join(said)
    if words(text) == words(exchange.response.text):
        return None
    unclear = {"gibberish", "contradiction", "wrong_speaker", "self_repetition"}
    return Faulty(text, frozenset({"not_fluent"}), frozenset(unclear))


def wrong_speaker(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty | None:
    """Confuse I and you, or say what the other speaker says next."""
    turns, here = exchange.dialogue.turns, exchange.turn
    follows = turns[here + 1].text if here + 1 < len(turns) else ""
    if follows and rng.random() < 0.35 and len(words(follows)) > 4:
        unclear = {"ignores_question", "off_topic", "contradiction"}
        return Faulty(follows, frozenset({"wrong_speaker"}), frozenset(unclear))
    text = ATTACKS["persons"](exchange.response.text, "", "", rng)
    if text == exchange.response.text:
        return None
    unclear = {"not_fluent", "contradiction"}
    return Faulty(text, frozenset({"wrong_speaker"}), frozenset(unclear))


def gibberish(exchange: Exchange, replies: Replies, rng: random.Random) -> Faulty:
    """Shuffle words, mix words of several replies, or write random letters."""
    reply, other = exchange.response.text, replies.other(exchange, rng)
    kind = rng.randrange(4)
    if kind == 0:
        pieces = [*reply.split(), *other.split()]
        text = " ".join(rng.sample(pieces, len(pieces))[: max(4, len(reply.split()))])
    elif kind == 1:
        drawn = [
            rng.choice(replies.other(exchange, rng).split()) for _ in range(rng.randint(4, 14))
        ]
        text = " ".join(drawn)
    elif kind == 2:
        letters = string.ascii_lowercase
        text = " ".join(
            "".join(rng.choice(letters) for _ in range(rng.randint(2, 9)))
            for _ in range(rng.randint(1, 8))
        )
    else:
        text = " ".join("".join(rng.sample(word, len(word))) for word in reply.split())
    unclear = {"off_topic", "ignores_question", "not_fluent", "dull", "contradiction"}
    return Faulty(text, frozenset({"gibberish"}), frozenset(unclear))


MAKERS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        off_topic,
        ignores_question,
        echo,
        self_repetition,
        contradiction,
        dull,
        not_fluent,
        wrong_speaker,
        gibberish,
    )
}


def made(exchange: Exchange, fault: str, replies: Replies, rng: random.Random) -> Faulty | None:
    """Make a reply with that fault; None if this reply does not allow it or did not change."""
    faulty = MAKERS[fault](exchange, replies, rng)
    if faulty is None or not faulty.text.strip():
        return None
    return None if faulty.text == exchange.response.text else faulty


def good(exchange: Exchange, replies: Replies) -> Faulty:
    """Return the true reply; even that may be dull."""
    text = exchange.response.text
    is_dull = replies.is_dull(_last(exchange), text)
    return Faulty(text, frozenset({"dull"}) if is_dull else GOOD)


def _last(exchange: Exchange) -> str:
    return exchange.last(1)[0].text


def _asks_whether(text: str) -> bool:
    """Whether the text asks a question that a yes or no answers."""
    asking = {"what", "why", "how", "where", "when", "who", "which", "whose"}
    return "?" in text and asking.isdisjoint(words(text))


def _denied(text: str, rng: random.Random) -> str | None:
    """Return the sentence with the opposite meaning; None if it cannot be negated."""
    changed = ATTACKS["contradict"](text, "", "", rng)
    if changed != text and rng.random() < 0.5:
        return changed
    if found := _AUXILIARY.search(text):
        return f"{text[: found.end()]} not{text[found.end() :]}"
    if found := _VERB.search(text):
        return f"{text[: found.start()]}{found[1]} don't {found[2]}{text[found.end() :]}"
    return changed if changed != text else None


def _swapped(text: str, other: str, rng: random.Random) -> str | None:
    """Return the text with one number or name replaced; None if it has none."""
    if numbers := list(_NUMBER.finditer(text)):
        found = rng.choice(numbers)
        value = int(found[0]) if len(found[0]) < 9 else 0
        return f"{text[: found.start()]}{value + rng.randint(1, 9)}{text[found.end() :]}"
    names, theirs = list(_NAME.finditer(text)), _NAME.findall(other)
    if names and theirs:
        found = rng.choice(names)
        return f"{text[: found.start()]}{rng.choice(theirs)}{text[found.end() :]}"
    return None


def _inflected(word: str, rng: random.Random) -> str:
    """Return the word in a form that is probably wrong."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word[: -len(ending)]
    return word + rng.choice(_ENDINGS)
