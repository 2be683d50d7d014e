"""The signals of open-domain dialogue evaluation, and templates of utterances that give them.

`utterances.txt` says how a template is written. Expansion is random but decided by a seed.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

SIGNALS: Final = (
    "disinterest",
    "critique",
    "not_understand",
    "topic_switch_request",
    "obscenity",
    "topic_switch_rejection",
    "repeat_request",
    "stop_request",
    "insult",
    "compliment",
    "calls_out_repetition",
    "calls_out_contradiction",
    "system_not_understand",
)
"""Classes (i) to (xiii) of the paper's table 1, in its order."""
OTHER: Final = "other"
"""Class (xiv): none of the signals."""
CLASSES: Final = (*SIGNALS, OTHER)
THRESHOLD: Final = 0.5
"""A signal fires above it."""
PRECISION: Final[Mapping[str, float]] = {
    "disinterest": 0.50,
    "critique": 0.72,
    "not_understand": 0.97,
    "topic_switch_request": 0.70,
    "obscenity": 0.30,
    "topic_switch_rejection": 0.45,
    "repeat_request": 0.20,
    "stop_request": 0.73,
    "insult": 0.23,
    "compliment": 0.74,
    "calls_out_repetition": 1.00,
    "calls_out_contradiction": 1.00,
    "system_not_understand": 0.86,
}
"""Of the shipped artifact, on turns of users that were held out (docs/odes-guideline.md)."""
TREATMENTS: Final = tuple(name for name in SIGNALS if PRECISION[name] >= 0.8)
"""Signals that are right often enough for a dialogue to be called treated when they fire."""

LISTS, SYSTEMS = "lists", "systems"
"""Sections of the file that are no signals: lists to fill in, and turns of the system."""
SPOKEN_BEFORE = ">>"
_PIECE = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]|\{(\w+)\}")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Utterance:
    """What a user says, after what the system said."""

    text: str
    before: str | None
    """The system's turn; None at the beginning of a dialogue."""


@dataclass(frozen=True, slots=True)
class Template:
    """Ways to say one thing."""

    labels: frozenset[str]
    user: str
    system: str | None
    """What the system has to say first; None: anything."""


@dataclass(frozen=True)
class Grammar:
    """All templates, with what fills them in."""

    templates: tuple[Template, ...]
    systems: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]

    def expand(self, text: str, rng: random.Random) -> str:
        """One of the texts that a template stands for."""

        def piece(match: re.Match[str]) -> str:
            either, perhaps, name = map(str, match.groups(""))
            if either:
                return rng.choice(either.split("|"))
            if perhaps:
                return rng.choice(perhaps.split("|")) if rng.random() < 0.5 else ""
            return rng.choice(self.lists[name])

        while _PIECE.search(text):  # a list may be named within alternatives
            text = _PIECE.sub(piece, text)
        return _SPACES.sub(" ", text).strip()

    def utterances(self, template: Template, count: int, seed: int) -> list[Utterance]:
        """Distinct utterances of a template, at most so many, in the words of many users."""
        rng = random.Random(f"{seed} {template.user}")
        found: dict[str, Utterance] = {}
        for _ in range(3 * count):  # short templates stand for few
            if len(found) < count:
                text = vary(self.expand(template.user, rng), rng)
                found.setdefault(text, Utterance(text, self._before(template, rng)))
        return list(found.values())

    def _before(self, template: Template, rng: random.Random) -> str | None:
        if template.system is None and rng.random() < 0.1:
            return None
        said = self.expand(template.system or rng.choice(self.systems), rng)
        return _sentence(said, rng) if rng.random() < 0.5 else said


def vary(text: str, rng: random.Random) -> str:
    """The same in another hand: as speech recognition writes it, as a sentence, with a slip."""
    if rng.random() < 0.15:
        text = f"{rng.choice(('well', 'um', 'alexa', 'hey', 'ok', 'oh', 'so'))} {text}"
    elif rng.random() < 0.1:
        text = f"{text} {rng.choice(('alexa', 'please', 'man', 'you know', 'okay'))}"
    if rng.random() < 0.1:
        text = _slip(text, rng)
    style = rng.random()
    if style < 0.35:
        return _sentence(text, rng)
    return text.replace("'", "") if style < 0.5 else text


def _sentence(text: str, rng: random.Random) -> str:
    text = re.sub(r"\bi\b", "I", text)
    end = "" if text[-1] in ".?!" else rng.choice((".", "!", "", "..."))
    return text[0].upper() + text[1:] + end


def _slip(text: str, rng: random.Random) -> str:
    """A letter lost, doubled or swapped with the next, in a word of at least four."""
    words = text.split()
    long = [index for index, word in enumerate(words) if len(word) > 3]
    if long:
        index = rng.choice(long)
        word = words[index]
        place = rng.randrange(1, len(word) - 1)
        a, b = word[place], word[place + 1]
        words[index] = word[:place] + rng.choice((b, a + a + b, b + a)) + word[place + 2 :]
    return " ".join(words)


def _file() -> str:
    return files(__package__).joinpath("utterances.txt").read_text("utf-8")


@cache
def shipped() -> Grammar:
    """The templates that come with causerie."""
    return parse(_file().splitlines())


def fingerprint() -> str:
    """SHA-256 of the file they are in: which templates an artifact was trained on."""
    return hashlib.sha256(_file().encode()).hexdigest()


def parse(lines: Sequence[str]) -> Grammar:
    """The grammar of a file of templates."""
    templates, systems = [], []
    lists: dict[str, tuple[str, ...]] = {}
    for section, line in _lines(lines):
        if section == LISTS:
            name, _, entries = line.partition("=")
            lists[name.strip()] = tuple(entries.strip().split("|"))
        elif section == SYSTEMS:
            systems.append(line)
        else:
            labels = frozenset(section.split())
            if not labels <= set(CLASSES) or (OTHER in labels and len(labels) > 1):
                raise ValueError(f"[{section}] is no set of signals")
            system, before, user = line.rpartition(SPOKEN_BEFORE)
            templates.append(Template(labels, user.strip(), system.strip() if before else None))
    return Grammar(tuple(templates), tuple(systems), lists)


def _lines(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each line that says something, with the section it stands in."""
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("[") and line.endswith("]") and "|" not in line:
            section = line[1:-1]
        elif line and not line.startswith("#"):
            yield section, line
