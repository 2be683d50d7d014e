"""How well the true response is told from others: R@1 and MRR, one of sixteen."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from causerie.dialogue import Dialogue, Exchange, Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.metrics.density.extractor import Extractor

CANDIDATES = 16


def ranking_items(exchanges: Sequence[Exchange], seed: int) -> list[list[Exchange]]:
    """Each exchange, and beside it 15 with responses of other dialogues in its place.

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


def true_ranks(extractor: Extractor, items: Sequence[Sequence[Exchange]]) -> NDArray[Any]:
    """Rank of the true response, which is the first, by the classifier; ties count against it."""
    import numpy as np

    logits = extractor.logits(extractor.features([e for item in items for e in item]))
    parts = np.split(logits, np.cumsum([len(item) for item in items])[:-1])
    return np.array([1 + int((part[1:] >= part[0]).sum()) for part in parts])
