"""Ways in which a response goes wrong, made from the right one: hard negatives.

Most keep much of the true response, so that its topic alone does not give it away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeAlias

Attack: TypeAlias = Callable[[str, str, str, random.Random], str]
"""Response, last utterance before it, an unrelated response, random numbers: the bad one."""

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
    """Say a part of it again and again."""
    words = response.split()
    start = rng.randrange(len(words))
    span = words[start : start + rng.randint(1, 4)]
    stop = start + len(span)
    return " ".join(words[:stop] + span * rng.randint(1, 4) + words[stop:])


def echo(response: str, last: str, other: str, rng: random.Random) -> str:
    """Say what the other speaker just said, with or without the answer."""
    return rng.choice((last, f"{last} {response}", f"{response} {last}"))


def mix(response: str, last: str, other: str, rng: random.Random) -> str:
    """Go on as in another conversation."""
    ours, theirs = response.split(), other.split()
    return " ".join(ours[: max(1, len(ours) // 2)] + theirs[len(theirs) // 2 :])


def swap(response: str, last: str, other: str, rng: random.Random) -> str:
    """Replace longer words by those of another response, which changes what is said."""
    theirs = [word for word in other.split() if len(word) > 3] or other.split()
    return " ".join(
        rng.choice(theirs) if len(word) > 3 and rng.random() < 0.5 else word
        for word in response.split()
    )


def shuffle(response: str, last: str, other: str, rng: random.Random) -> str:
    """Lose the order of the words."""
    words = response.split()
    return " ".join(rng.sample(words, len(words)))


def persons(response: str, last: str, other: str, rng: random.Random) -> str:
    """Mistake who is who."""
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
    """The response after an attack picked at random; the unrelated one if nothing changed."""
    changed = rng.choice(list(ATTACKS.values()))(response, last, other, rng)
    return changed if changed.strip() and changed != response else other


def _replace(text: str, words: dict[str, str]) -> str:
    def exchange(match: re.Match[str]) -> str:
        word = match[0]
        found = words.get(word.lower().replace("’", "'"), word)
        return found[0].upper() + found[1:] if word[0].isupper() and found != word else found

    return _WORD.sub(exchange, text)
