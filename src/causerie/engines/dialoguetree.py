"""Trees of turns: how the exchanges of a dialogue become one tree that shares what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeVar

from causerie.dialogue import Dialogue, Exchange, Role
from causerie.engines.tree import Tree
from causerie.engines.turnformat import TurnFormat

Answer = TypeVar("Answer")


def by_dialogue(
    exchanges: Sequence[Exchange],
    turn_format: TurnFormat,
    score: Callable[[DialogueTree, list[Exchange]], Sequence[Answer]],
) -> list[Answer]:
    """Score the exchanges of every dialogue with a tree of its own; answers in input order.

    Where a network's passes are not independent of their company (see `causerie.engines.attention`)
    the last digits depend on what shares one, so no two dialogues do.
    """
    places: dict[bytes, list[int]] = {}
    seen: dict[int, tuple[Dialogue, bytes]] = {}
    for place, exchange in enumerate(exchanges):
        dialogue = exchange.dialogue
        if id(dialogue) not in seen:
            said = [(turn.speaker, turn.role, turn.text) for turn in dialogue.turns]
            digest = blake2b(repr(said).encode(), digest_size=16).digest()
            seen[id(dialogue)] = dialogue, digest
        places.setdefault(seen[id(dialogue)][1], []).append(place)
    answers: dict[int, Answer] = {}
    for scope, own in places.items():
        found = score(DialogueTree(turn_format, scope), [exchanges[place] for place in own])
        answers.update(zip(own, found, strict=True))
    return [answers[place] for place in range(len(exchanges))]


class DialogueTree(Tree):
    """A tree whose segments are turns in a language model's format.

    The exchanges of a dialogue share their history. Roles are as each exchange sees them, so a
    dialogue without roles has one history per speaker whose responses are scored.
    """

    def __init__(self, turn_format: TurnFormat, scope: bytes = b"") -> None:
        super().__init__(turn_format.prefix, scope)
        self.format = turn_format
        self._roles: dict[int, Role] = {}
        self._trunks: dict[tuple[int, str], tuple[Dialogue, list[int]]] = {}

    def say(self, parent: int, role: Role, text: str, then: Role | None = None) -> int:
        """The node of a turn after `parent`; `then` is the role of the turn that follows it."""
        segment = self.format.segment(role, text, after=self._roles.get(parent), then=then)
        node = self.add(parent, segment)
        self._roles[node] = role
        return node

    def history(self, exchange: Exchange, then: Role) -> int:
        """The node of the context's last turn, to be followed by a turn of role `then`."""
        if exchange.turn == 0:
            return self.ROOT
        before = exchange.turn - 1
        last = exchange.dialogue.turns[before]
        parent = self._trunk(exchange)[before]
        return self.say(parent, exchange.role_of(last), last.text, then)

    def response(self, exchange: Exchange) -> int:
        """The node of the response after the whole context."""
        role = exchange.role_of(exchange.response)
        return self.say(self.history(exchange, role), role, exchange.response.text)

    def _trunk(self, exchange: Exchange) -> list[int]:
        """Where each of the turns before the response hangs; every turn is walked once."""
        dialogue = exchange.dialogue
        # The dialogue is kept, so that its id stays its own.
        _, trunk = self._trunks.setdefault(
            (id(dialogue), exchange.response.speaker), (dialogue, [self.ROOT])
        )
        for index in range(len(trunk) - 1, exchange.turn - 1):
            turn, following = dialogue.turns[index], dialogue.turns[index + 1]
            role, then = exchange.role_of(turn), exchange.role_of(following)
            trunk.append(self.say(trunk[index], role, turn.text, then))
        return trunk
