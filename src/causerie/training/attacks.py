"""Ways in which a response goes wrong, made from the right one: hard negatives.

Each keeps most of the true response, so that topic alone does not give it away.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

Attack: TypeAlias = Callable[[str, str, str, random.Random], str]
"""Response, last utterance before it, an unrelated response, random numbers: the bad one."""


def repeat(response: str, last: str, other: str, rng: random.Random) -> str:
    """Say a part of it again and again."""
    words = response.split()
    start = rng.randrange(len(words))
    span = words[start : start + rng.randint(1, 4)]
    return " ".join(words[: start + len(span)] + span * rng.randint(1, 4) + words[start + len(span) :])


def echo(response: str, last: str, other: str, rng: random.Random) -> str:
    """Say what the other speaker just said, with or without the answer."""
    return rng.choice((last, f"{last} {response}", f"{response} {last}"))


def mix(response: str, last: str, other: str, rng: random.Random) -> str:
    """Go on as in another conversation."""
    ours, theirs = response.split(), other.split()
    head = ours[: max(1, len(ours) // 2)]
    return " ".join(head + theirs[len(theirs) // 2 :])


def swap(response: str, last: str, other: str, rng: random.Random) -> str:
    """Replace its longer words by those of another response, which changes what is said."""
    theirs = [w for w in other.split() if len(w) > 3] or other.split()
    return " ".join(
        rng.choice(theirs) if len(word) > 3 and rng.random() < 0.5 else word
        for word in response.split()
    )


def shuffle(response: str, last: str, other: str, rng: random.Random) -> str:
    """Lose the order of the words."""
    words = response.split()
    rng.shuffle(words)
    return " ".join(words)


ATTACKS: dict[str, Attack] = {
    "repeat": repeat, "echo": echo, "mix": mix, "swap": swap, "shuffle": shuffle
}


def corrupt(response: str, last: str, other: str, rng: random.Random) -> str:
    """The response after an attack picked at random; the unrelated one if nothing changed."""
    changed = rng.choice(list(ATTACKS.values()))(response, last, other, rng)
    return changed if changed.strip() and changed != response else other
