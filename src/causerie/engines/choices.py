"""Questions with a few possible answers, and how likely a language model is to give each.

The answers' log-probabilities come from one pass over the question, so no text is written or
parsed. What is asked about is only ever text: nothing in it is a special token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from causerie.engines.tree import Segment, Tree
from causerie.engines.window import first_visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines.likelihood import Likelihood


@dataclass(frozen=True)
class Question:
    """What is asked: turns, of which the oldest may be left out, and what comes after them."""

    turns: tuple[str, ...]
    closing: str


def answer_log_probabilities(
    engine: Likelihood,
    opening: str,
    questions: Sequence[Question],
    answers: Sequence[Sequence[str]],
    scope: bytes = b"",
) -> list[NDArray[np.float64] | None]:
    """Per question the log-probability of each answer, which is that of all its spellings.

    `opening` comes before every question, and what several have in common goes through the
    network once. The user asks, the system answers. Where not even the question without turns
    fits the window, there is None.
    """
    form, window = engine.format, engine.backbone.window
    user, system = form.scaffolds["user"], form.scaffolds["system"]
    prefix = (*form.prefix, *user.header, *form.tokens(user.lead + opening))
    room = window - window // 4  # the longest history that the engine leaves as it is
    tree = Tree(prefix, scope)
    leaves: list[list[list[int]]] = []
    shortened: list[int] = []
    for question in questions:
        turns = [form.tokens(turn) for turn in question.turns]
        closing = (*form.tokens(question.closing), *user.footer, *system.header)
        if len(prefix) >= window // 2 or len(prefix) + len(closing) > room:
            leaves.append([])
            continue
        sizes = [*map(len, turns), len(closing)]
        first = first_visible(sizes, len(prefix), window)[-1]
        node = Tree.ROOT
        for tokens in (*turns[first:], closing):
            node = tree.add(node, Segment(tokens, len(tokens), len(tokens)))
        own = [
            [tree.add(node, Segment.of(form.tokens(system.lead + word))) for word in spellings]
            for spellings in answers
        ]
        leaves.append(own)
        if first:
            shortened += [leaf for spelled in own for leaf in spelled]
    asked = [leaf for own in leaves for spelled in own for leaf in spelled]
    if not asked:
        return [None] * len(questions)
    found = engine.score(tree, segments=asked, shortened=shortened)
    return [
        np.array([np.logaddexp.reduce([found.segment(n).total for n in nodes]) for nodes in own])
        if own
        else None
        for own in leaves
    ]
