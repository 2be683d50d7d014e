"""Turn pairs: consecutive turns of one side are joined, and user turns paired with responses.

All features that ratings are predicted from are measured on the dialogues that `paired` returns.
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

    `system` names the speaker who is the system, if neither roles nor names tell. Every turn of
    the result has a role. A joined turn has the texts of its parts, all their references, and the
    mean of each of their numbers.
    """
    runs = groupby(dialogue.turns, key=lambda turn: _role(dialogue, turn, system))
    return replace(dialogue, turns=tuple(_joined(list(run), role) for role, run in runs))


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A user's turn and the response to it; either may be missing at an end."""

    said: Exchange | None
    """The user's turn with its context, in the paired dialogue."""
    response: Exchange | None
    """The system's turn, likewise."""

    @property
    def user(self) -> str | None:
        """Text of the user's turn; None if empty or missing."""
        return (self.said.response.text or None) if self.said else None

    @property
    def before(self) -> str | None:
        """Text of the system's turn right before the user's."""
        return self.said.last(1)[0].text if self.said and self.said.turn else None

    @property
    def answer(self) -> str:
        """Text of the response; empty if missing."""
        return self.response.response.text if self.response else ""

    @property
    def text(self) -> str:
        """Text of both turns."""
        return " ".join(text for text in (self.user, self.answer) if text)

    @property
    def columns(self) -> dict[str, float]:
        """The numbers given with the turns.

        `user.asr` and `system.asr` are those of a side; `asr` exists if only one side has it.
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
    """Return the role of a turn; it may not be guessed, because ratings are of the system."""
    if turn.role is None and system is None:
        raise CauserieError(
            f"speaker {turn.speaker!r} may be the user or the system: "
            "give roles, or --system SPEAKER"
        )
    return dialogue.role_of(turn, system)
