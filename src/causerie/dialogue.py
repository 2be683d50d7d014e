"""The data model: a dialogue is turns, an exchange is one of them with what came before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["user", "system"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance."""

    speaker: str
    text: str
    role: Role | None = None
    """Who speaks, where the source says so; `Exchange.role_of` decides where it does not."""
    time: str | None = None
    references: tuple[str, ...] = ()
    """Other texts that would have been good here; reference-based metrics need them."""
    features: Mapping[str, float] = field(default_factory=dict)
    """Numbers the caller knows about the turn, such as the confidence of speech recognition."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: an id and its turns in order."""

    id: str
    turns: tuple[Turn, ...]
    rating: float | None = None
    date: str | None = None
    system: str | None = None
    """Which chatbot took part."""
    background: tuple[str, ...] = ()
    """What the speakers knew beforehand: a persona, facts, a system prompt."""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def exchanges(self, speaker: str | None = "all") -> list[Exchange]:
        """Every response with its context; only those of one speaker or role if given.

        The first turn responds to nothing, so a dialogue of n turns has n-1 exchanges. See
        `is_by` for what `speaker` can be.
        """
        return [
            Exchange(self, index)
            for index in range(1, len(self.turns))
            if self.is_by(self.turns[index], speaker)
        ]

    def is_by(self, turn: Turn, speaker: str | None) -> bool:
        """Whether a turn is by a speaker or role; `all` is everybody, `assistant` the system.

        None is whoever is to be scored unless somebody says otherwise: the system where the
        dialogue says who that is, and everybody where it does not.
        """
        if speaker is None:
            speaker = "system" if any(t.role == "system" for t in self.turns) else "all"
        if speaker == "all":
            return True
        role = "system" if speaker == "assistant" else speaker
        return speaker == turn.speaker or role == turn.role


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response with the turns before it: a view of a dialogue at one of its turns."""

    dialogue: Dialogue
    turn: int
    """0-based index of the response in its dialogue."""

    @property
    def response(self) -> Turn:
        return self.dialogue.turns[self.turn]

    @property
    def context(self) -> tuple[Turn, ...]:
        return self.dialogue.turns[: self.turn]

    def last(self, count: int) -> tuple[Turn, ...]:
        """The last `count` turns of the context, without copying the rest of it."""
        return self.dialogue.turns[max(0, self.turn - count) : self.turn]

    @property
    def references(self) -> tuple[str, ...]:
        return self.response.references

    @property
    def background(self) -> tuple[str, ...]:
        return self.dialogue.background

    def with_response(self, text: str) -> Exchange:
        """The same context, answered otherwise."""
        turns = (*self.context, replace(self.response, text=text))
        return replace(self, dialogue=replace(self.dialogue, turns=turns))

    def recent(self, count: int) -> Exchange:
        """The same exchange with only the last `count` turns of its context."""
        if self.turn <= count:
            return self
        turns = (*self.last(count), self.response)
        return Exchange(replace(self.dialogue, turns=turns), count)

    def role_of(self, turn: Turn) -> Role:
        """The turn's role; where unknown, the response's speaker is the system."""
        if turn.role is not None:
            return turn.role
        return "system" if turn.speaker == self.response.speaker else "user"
