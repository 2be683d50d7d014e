"""How well a language model knows conversations that it has not seen.

Two measures: nats per character of utterance text, and how often it finds what a user really
said to the system among what other users said to theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from causerie.dialogue import Dialogue, Exchange
from causerie.engines.dialoguetree import DialogueTree
from causerie.stats import ClusteredRatio
from causerie.training.candidates import ranking_items
from causerie.training.corpus import Corpus

if TYPE_CHECKING:
    from causerie.engines.likelihood import Likelihood

HISTORY = 6
"""Turns that the model sees before a reaction."""
AT_ONCE = 16


def nats_per_character(engine: Likelihood, dialogues: Sequence[Dialogue]) -> ClusteredRatio:
    """Of every turn given those before it; the last speaker is the system where none is known."""
    nats, characters = [], []
    for start in range(0, len(dialogues), AT_ONCE):
        tree = DialogueTree(engine.format)
        paths = []
        for dialogue in dialogues[start : start + AT_ONCE]:
            last = Exchange(dialogue, len(dialogue.turns) - 1)
            paths.append(tree.path(tree.response(last)))
        scores = engine.score(tree, segments=[node for path in paths for node in path])
        nats += [-sum(scores.segment(node).total for node in path) for path in paths]
    for dialogue in dialogues:
        characters.append(sum(len(turn.text) for turn in dialogue.turns))
    return ClusteredRatio(np.array(nats), np.array(characters))


def reactions(corpus: Corpus, seed: int) -> list[list[Exchange]]:
    """What users said to the system, each followed by what others said; none without roles.

    Others of the same source: those of another would be told by style alone.
    """
    items = []
    for source in corpus.sources:
        found = [
            exchange
            for dialogue in source
            for exchange in dialogue.exchanges()
            if exchange.response.role == "user" and exchange.context[-1].role == "system"
        ]
        items += ranking_items(found, seed)
    return items


def reactions_found(engine: Likelihood, items: Sequence[Sequence[Exchange]]) -> ClusteredRatio:
    """How many true reactions have the highest likelihood per token of their item."""
    found: dict[int, list[bool]] = {}
    for item in items:
        tree = DialogueTree(engine.format)
        nodes = [tree.response(exchange.recent(HISTORY)) for exchange in item]
        scores = engine.score(tree, segments=nodes)
        true, *others = (scores.segment(node).mean for node in nodes)
        first = all(other < true for other in others)
        found.setdefault(id(item[0].dialogue), []).append(first)
    return ClusteredRatio(
        np.array([float(sum(firsts)) for firsts in found.values()]),
        np.array([float(len(firsts)) for firsts in found.values()]),
    )
