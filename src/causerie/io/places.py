"""Where in a context a text was marked: a turn, and characters of it.

Annotators copy text, and files keep copies: white space changes, case may, and a copy may begin
with the name of the speaker or run over several turns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from causerie.dialogue import Turn


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a turn's text."""

    turn: int
    """0-based index of the turn."""
    start: int
    stop: int
    """Characters (code points) of its text, as Python counts them."""

    def text(self, turns: Sequence[Turn]) -> str:
        return turns[self.turn].text[self.start : self.stop]


def whole_turn(turns: Sequence[Turn], turn: int) -> Place:
    return Place(turn, 0, len(turns[turn].text))


def places_of(span: str, context: Sequence[Turn]) -> tuple[Place, ...]:
    """Where a span was taken from: in the latest turn that holds it, or those it runs over.

    Whole words come before parts of words. White space does not matter, nor case where it would
    match nothing; a span may begin with the name of the speaker. None if it is nowhere.
    """
    ways = [_Way(context, folded, named) for folded in (False, True) for named in (False, True)]
    ways = [way for way in ways if way.read(span)]
    for way in ways:
        wanted = re.escape(way.read(span))
        word = re.compile(rf"(?<!\w){wanted}(?!\w)")  # "no" is not in "I know"
        for index in reversed(range(len(context))):
            if found := word.search(way.texts[index]):
                return (way.place(index, *found.span()),)
    for way in ways:
        wanted = way.read(span)
        for index in reversed(range(len(context))):
            if (start := way.texts[index].find(wanted)) >= 0:
                return (way.place(index, start, start + len(wanted)),)
        if (start := " ".join(way.texts).rfind(wanted)) >= 0:
            return tuple(way.covered(start, start + len(wanted)))
    return ()


def places_in(span: str, context: Sequence[Turn], turns: Collection[int]) -> tuple[Place, ...]:
    """The same among these turns alone, where they are known to be the ones."""
    among = sorted(turns)
    found = places_of(span, [context[index] for index in among])
    return tuple(Place(among[place.turn], place.start, place.stop) for place in found)


@dataclass(frozen=True)
class _Way:
    """How texts are compared: white space is one space, or nothing at the ends."""

    context: Sequence[Turn]
    folded: bool
    """Whether case does not matter."""
    named: bool
    """Whether a turn begins with the name of its speaker."""

    def read(self, text: str) -> str:
        return " ".join((text.casefold() if self.folded else text).split())

    @cached_property
    def texts(self) -> list[str]:
        return [self.read(self._name(turn) + turn.text) for turn in self.context]

    def _name(self, turn: Turn) -> str:
        return f"{turn.speaker}: " if self.named else ""

    def place(self, index: int, start: int, stop: int) -> Place:
        """Of a stretch of what is compared; of a name alone it is the whole turn."""
        turn = self.context[index]
        origins = self._origins(turn)
        first, last = max(0, origins[start]), origins[stop - 1]
        return whole_turn(self.context, index) if last < 0 else Place(index, first, last + 1)

    def _origins(self, turn: Turn) -> list[int]:
        """Which character of the turn each that is compared comes from; below 0 in the name."""
        name = self._name(turn)
        origins: list[int] = []
        space = True
        for origin, character in enumerate(name + turn.text, -len(name)):
            if not character.isspace():
                origins += [origin] * len(character.casefold() if self.folded else character)
            elif not space:
                origins.append(origin)
            space = character.isspace()
        return origins

    def covered(self, start: int, stop: int) -> Iterator[Place]:
        """What lies between two places of the turns joined by spaces."""
        begins = accumulate((len(text) + 1 for text in self.texts), initial=0)
        for index, (text, begin) in enumerate(zip(self.texts, begins, strict=False)):
            first, last = max(0, start - begin), min(len(text), stop - begin)
            if first < last:
                yield self.place(index, first, last)
