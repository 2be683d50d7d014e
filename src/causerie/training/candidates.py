"""One true response among others: what selection is trained on and measured with."""

from __future__ import annotations

import random
from collections.abc import Sequence

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.training.corpus import Corpus

CANDIDATES = 16


def ranking_items(exchanges: Sequence[Exchange], seed: int) -> list[list[Exchange]]:
    """Each exchange, and after it 15 with responses of other dialogues in its place.

    No text comes twice, whatever its case, and none is empty. Where there are too few dialogues to
    draw from, there are fewer candidates; exchanges that would have none are left out.
    """
    rng = random.Random(seed)
    items = []
    for exchange in exchanges:
        drawn: list[Exchange] = []
        there = {"", _plain(exchange.response.text)}
        for _ in range(4 * CANDIDATES):
            other = rng.choice(exchanges)
            text = other.response.text
            if other.dialogue is not exchange.dialogue and _plain(text) not in there:
                there.add(_plain(text))
                drawn.append(exchange.with_response(text))
            if len(drawn) == CANDIDATES - 1:
                break
        if drawn:
            items.append([exchange, *drawn])
    return items


def _plain(text: str) -> str:
    return text.casefold().strip()


def corpus_items(corpus: Corpus, count: int | None, seed: int) -> list[list[Exchange]]:
    """Items of exchanges drawn from a corpus (None: of all), candidates of the same source."""
    total = sum(len(d.turns) - 1 for d in corpus.dialogues)
    share = 1.0 if count is None else min(1.0, count / total)
    items = []
    for source in corpus.sources:
        exchanges = [exchange for dialogue in source for exchange in dialogue.exchanges()]
        drawn = random.Random(seed).sample(exchanges, max(1, round(share * len(exchanges))))
        items += ranking_items(drawn, seed)
    random.Random(seed).shuffle(items)
    if not items:
        raise CauserieError("a single dialogue has no others to draw responses from: give more")
    return items
