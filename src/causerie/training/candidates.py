"""One true response among others: what selection is trained on and measured with."""

from __future__ import annotations

import random
from collections.abc import Sequence

from causerie.dialogue import Dialogue, Exchange, Turn

CANDIDATES = 16


def ranking_items(exchanges: Sequence[Exchange], seed: int) -> list[list[Exchange]]:
    """Each exchange, and after it 15 with responses of other dialogues in its place.

    A response that has the true one's text is not drawn; where there are no other dialogues
    to draw from, there are fewer candidates.
    """
    rng = random.Random(seed)
    items = []
    for exchange in exchanges:
        drawn: list[Exchange] = []
        for _ in range(4 * CANDIDATES):
            other = rng.choice(exchanges)
            text = other.response.text
            if other.dialogue is not exchange.dialogue and text != exchange.response.text:
                drawn.append(with_response(exchange, text))
            if len(drawn) == CANDIDATES - 1:
                break
        items.append([exchange, *drawn])
    return items


def with_response(exchange: Exchange, text: str) -> Exchange:
    """The same context with another response."""
    response = Turn(exchange.response.speaker, text, exchange.response.role)
    turns = (*exchange.context, response)
    return Exchange(Dialogue(exchange.dialogue.id, turns), exchange.turn)
