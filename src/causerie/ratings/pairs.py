"""A dialogue as turn pairs: what the user says, and what the system answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from causerie.dialogue import Dialogue, Exchange, Role, Turn
from causerie.errors import CauserieError
from causerie.io.records import ROLES


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A user's utterance and the response to it; either may be missing at an end."""

    user: str | None
    before: str | None
    """What the system said right before the user."""
    response: Exchange | None
    """The response with all that was said before it."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """The numbers that the caller gave for these turns."""


def turn_pairs(dialogue: Dialogue, system: str | None = None) -> tuple[TurnPair, ...]:
    """The pairs of a dialogue in order; several turns of one side in a row count as one.

    `system` names the speaker who is the system, where neither roles nor names tell.
    """
    runs = [
        (role, [index for index, _ in run])
        for role, run in groupby(
            enumerate(dialogue.turns), key=lambda numbered: role_of(numbered[1], system)
        )
    ]
    pairs: list[TurnPair] = []
    place = 0
    while place < len(runs):
        role, indices = runs[place]
        following = runs[place + 1][1] if place + 1 < len(runs) else []
        users, systems = (indices, following) if role == "user" else ([], indices)
        said = " ".join(dialogue.turns[index].text for index in users)
        before = dialogue.turns[indices[0] - 1].text if users and indices[0] else None
        numbers = [dialogue.turns[index].features for index in (*users, *systems)]
        pairs.append(
            TurnPair(
                said or None,
                before,
                Exchange(dialogue, systems[-1]) if systems else None,
                {name: value for one in numbers for name, value in one.items()},
            )
        )
        place += 2 if users and systems else 1
    return tuple(pairs)


def role_of(turn: Turn, system: str | None) -> Role:
    if system is not None:
        return "system" if turn.speaker == system else "user"
    role = turn.role or ROLES.get(turn.speaker.lower())
    if role is not None:
        return role
    raise CauserieError(
        f"speaker {turn.speaker!r} may be the user or the system: give roles, or --system SPEAKER"
    )
