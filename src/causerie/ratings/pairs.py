"""A dialogue as turn pairs: what the user says, and what the system answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean

from causerie.dialogue import Dialogue, Exchange, Role, Turn
from causerie.errors import CauserieError


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A user's utterance and the response to it; either may be missing at an end."""

    user: str | None
    before: str | None
    """What the system said right before the user."""
    response: Exchange | None
    """The response with all that was said before it; of several turns in a row, the last."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """The numbers that the caller gave for these turns, averaged over those of a side.

    `user.asr` and `system.asr` are those of a side; `asr` is there if one side alone has it.
    """
    opening: str = ""
    """What the system said in its turns right before the response."""

    @property
    def answer(self) -> str:
        """All that the system said back; empty if nothing."""
        response = self.response.response.text if self.response else ""
        return f"{self.opening} {response}".strip()


def turn_pairs(dialogue: Dialogue, system: str | None = None) -> tuple[TurnPair, ...]:
    """The pairs of a dialogue in order; several turns of one side in a row count as one.

    `system` names the speaker who is the system, where neither roles nor names tell.
    """
    runs = [
        (role, [index for index, _ in run])
        for role, run in groupby(
            enumerate(dialogue.turns), key=lambda numbered: _role(dialogue, numbered[1], system)
        )
    ]
    pairs: list[TurnPair] = []
    place = 0
    while place < len(runs):
        role, indices = runs[place]
        following = runs[place + 1][1] if place + 1 < len(runs) else []
        users, systems = (indices, following) if role == "user" else ([], indices)
        earlier = runs[place - 1][1] if users and place else []
        pairs.append(
            TurnPair(
                _text(dialogue, users) or None,
                _text(dialogue, earlier) if earlier else None,
                Exchange(dialogue, systems[-1]) if systems else None,
                _columns(
                    [dialogue.turns[index].features for index in users],
                    [dialogue.turns[index].features for index in systems],
                ),
                _text(dialogue, systems[:-1]),
            )
        )
        place += 2 if users and systems else 1
    return tuple(pairs)


def _text(dialogue: Dialogue, turns: Sequence[int]) -> str:
    return " ".join(dialogue.turns[index].text for index in turns)


def _columns(
    user: Sequence[Mapping[str, float]], system: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    sides = [_averages(user), _averages(system)]
    found = {
        f"{role}.{name}": value
        for role, side in zip(("user", "system"), sides, strict=True)
        for name, value in side.items()
    }
    for side, other in (sides, reversed(sides)):
        found.update({name: value for name, value in side.items() if name not in other})
    return found


def _averages(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each name, over the turns that have it."""
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
