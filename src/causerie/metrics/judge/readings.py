"""Parsing a judge's answers into a distribution over the possible answers, or a reason.

Text is parsed strictly: it has to begin with one of the possible answers or contain exactly one
number. Anything else is not a rating, and none is made up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from causerie.engines.completion import Choice
from causerie.metrics.judge.prompts import Prompt
from causerie.progress import printable

_LABEL = r"^[^\w-]*(?:(?:rating|score|stars|answer)\b[^\w-]*(?:is\b[^\w-]*)?)?"
_NUMBER = re.compile(r"-?(?<!\w)[0-9]+(?:[.,][0-9]+)?(?!\w)")
_RANGE = re.compile(r"\s*(?:[-–—/]|to\b)\s*[0-9]")
_FIRST_NUMBER = re.compile(_LABEL + r"(?P<number>[0-9]+)(?P<rest>(?![.,]?[0-9]|\w)[\s\S]*)", re.I)
_FIRST_WORD = re.compile(_LABEL + r"(?P<word>yes|no)\b", re.I)
_EDGES = re.compile(r"^[\W_Ġ]+|[\W_]+$")
_SHOWN = 80
"""Maximum number of characters of an answer quoted in a reason."""


@dataclass(frozen=True)
class Reading:
    """The answer to one question."""

    probabilities: tuple[float, ...]
    """Probabilities of the possible answers; their sum is 1."""
    mass: float | None = None
    """Total probability that the judge gave these answers; None if unknown."""

    @classmethod
    def of(cls, log_probabilities: Sequence[float]) -> Reading | str:
        """Normalise the log-probabilities of all possible answers."""
        top = max(log_probabilities)
        if not math.isfinite(top):
            return "the judge gives none of the possible answers a probability"
        weights = [math.exp(one - top) for one in log_probabilities]
        total = math.fsum(weights)
        # Several spellings of an answer may overlap by a rounding error.
        return cls(tuple(w / total for w in weights), min(1.0, math.exp(top) * total))

    def value(self, prompt: Prompt) -> float:
        """Return the expected value of the answer."""
        expected = math.fsum(p * v for p, v in zip(self.probabilities, prompt.values, strict=True))
        low, high = prompt.range
        return min(high, max(low, expected))


def read_choices(choices: Sequence[Choice], prompt: Prompt) -> Reading | str:
    """Return the mean of several answers to one question, ignoring invalid ones."""
    readings = [_read(choice, prompt) for choice in choices]
    good = [reading for reading in readings if isinstance(reading, Reading)]
    if not good:
        return next(reading for reading in readings if isinstance(reading, str))
    masses = [reading.mass for reading in good if reading.mass is not None]
    return Reading(
        tuple(fmean(column) for column in zip(*(r.probabilities for r in good), strict=True)),
        fmean(masses) if masses else None,
    )


def _read(choice: Choice, prompt: Prompt) -> Reading | str:
    """Read an answer from the log-probabilities of its token if given, else from its text."""
    text = choice.text.rpartition("</think>")[2]
    given = _stated(text, prompt)
    if given is None:
        shown = printable(" ".join(text.split()))[:_SHOWN]
        wanted = (
            "a yes or no"
            if prompt.scale is None
            else "a rating from {} to {}".format(*prompt.scale)
        )
        return (
            f"the judge's answer is not {wanted}: {shown!r}"
            if shown
            else "the judge's answer is empty"
        )
    for token, alternatives in choice.tokens:
        if _answer_of(token, prompt) == given:
            chances = [0.0] * len(prompt.values)
            for other, logprob in alternatives.items():
                place = _answer_of(other, prompt)
                if place is not None and logprob <= 1e-6:  # false for what is not a number, too
                    chances[place] += math.exp(logprob)
            if (total := math.fsum(chances)) > 0:
                return Reading(tuple(c / total for c in chances), min(1.0, total))
            break
    return Reading(tuple(float(place == given) for place in range(len(prompt.values))))


def _stated(text: str, prompt: Prompt) -> int | None:
    """Return the index of the answer that a text gives; None if it gives none."""
    if prompt.scale is None:
        word = _FIRST_WORD.match(text)
        return _answer_of(word["word"], prompt) if word else None
    high = prompt.scale[1]
    text = re.sub(rf"(?<=[0-9])\s*(?:/|out of)\s*{high}(?![0-9.,])", "", text, flags=re.I)
    first = _FIRST_NUMBER.match(text)
    if first and not _RANGE.match(first["rest"]):
        return _answer_of(first["number"], prompt)
    numbers = set(_NUMBER.findall(text))
    return _answer_of(numbers.pop(), prompt) if len(numbers) == 1 else None


def _answer_of(text: str, prompt: Prompt) -> int | None:
    """Return the index of a word among the possible answers."""
    word = text if text.startswith("-") else _EDGES.sub("", text).lower()
    places = (p for p, spelled in enumerate(prompt.spellings) if word in map(str.lower, spelled))
    return next(places, None)
