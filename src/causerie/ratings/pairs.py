"""A dialogue as ratings see it: what one side says in a row is one turn, and turns are pairs.

Everything that ratings measure of a dialogue, by a metric or otherwise, is measured on what
`paired` makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from causerie.dialogue import Dialogue, Exchange, Role, Turn
from causerie.errors import CauserieError


def paired(dialogue: Dialogue, system: str | None = None) -> Dialogue:
    """Return the dialogue with consecutive turns of one side joined, so that sides alternate.

    `system` names the speaker who is the system, where neither roles nor names tell. Every turn
    has its role then. A joined turn has the texts of its parts, all their references, and the
    mean of each of their numbers.
    """
    runs = groupby(dialogue.turns, key=lambda turn: _role(dialogue, turn, system))
    return replace(dialogue, turns=tuple(_joined(list(run), role) for role, run in runs))


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A user's turn and the response to it; either may be missing at an end."""

    said: Exchange | None
    """The user's turn with all that was said before it, in the paired dialogue."""
    response: Exchange | None
    """The system's, likewise."""

    @property
    def user(self) -> str | None:
        """What the user says; None if nothing."""
        return (self.said.response.text or None) if self.said else None

    @property
    def before(self) -> str | None:
        """What the system said right before the user."""
        return self.said.last(1)[0].text if self.said and self.said.turn else None

    @property
    def answer(self) -> str:
        """What the system says back; empty if nothing."""
        return self.response.response.text if self.response else ""

    @property
    def text(self) -> str:
        """What both say."""
        return " ".join(text for text in (self.user, self.answer) if text)

    @property
    def columns(self) -> dict[str, float]:
        """The numbers that the caller gave for the turns.

        `user.asr` and `system.asr` are those of a side; `asr` is there if one side alone has it.
        """
        sides = {
            role: one.response.features if one else {}
            for role, one in (("user", self.said), ("system", self.response))
        }
        found = {f"{role}.{name}": v for role, side in sides.items() for name, v in side.items()}
        user, system = sides.values()
        alone = user.keys() ^ system.keys()
        return {**found, **{n: v for n, v in {**user, **system}.items() if n in alone}}


def turn_pairs(dialogue: Dialogue, system: str | None = None) -> tuple[TurnPair, ...]:
    """Return the pairs of a dialogue in order; `system` is as in `paired`."""
    talk = paired(dialogue, system)
    pairs = []
    for index, turn in enumerate(talk.turns):
        if turn.role == "user":
            answered = index + 1 < len(talk.turns)
            response = Exchange(talk, index + 1) if answered else None
            pairs.append(TurnPair(Exchange(talk, index), response))
        elif index == 0:
            pairs.append(TurnPair(None, Exchange(talk, index)))
    return tuple(pairs)


def _joined(run: Sequence[Turn], role: Role) -> Turn:
    first, *more = run
    if not more:
        return replace(first, role=role)
    return replace(
        first,
        role=role,
        text=" ".join(turn.text for turn in run if turn.text),
        references=tuple(text for turn in run for text in turn.references),
        features=_averages([turn.features for turn in run]),
    )


def _averages(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average each name over the turns that have it."""
    names = dict.fromkeys(name for turn in turns for name in turn)
    return {name: fmean(turn[name] for turn in turns if name in turn) for name in names}


def _role(dialogue: Dialogue, turn: Turn, system: str | None) -> Role:
    """The turn's role; a rating is of the system, so who that is may not be guessed."""
    if turn.role is None and system is None:
        raise CauserieError(
            f"speaker {turn.speaker!r} may be the user or the system: "
            "give roles, or --system SPEAKER"
        )
    return dialogue.role_of(turn, system)
