"""Which tokens go through the network together, and which of them are kept for later passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from causerie.engines.trie import Forest, Ints


@dataclass(frozen=True)
class Pass:
    """One forward pass over nodes of a forest.

    The network's cache holds tokens in the order in which they went through it.
    """

    past: int
    """How many tokens of the cache to keep for it; the rest is dropped first."""
    nodes: Ints
    """What goes through, parents before children."""


def plan(forest: Forest, budget: int) -> Iterator[Pass]:
    """Forward passes of at most `budget` tokens that compute every node exactly once.

    Trees that fit a pass are packed, several per pass. A larger one runs its trunk first: the
    tokens from its root down, at each fork into the larger side, as long as what is left does
    not fit a pass. The trunk stays in the cache and its branches follow, the deepest first, so
    that the cache only shrinks; a branch too large for a pass is run in the same way.
    """
    ends: list[int] = forest.ends.tolist()

    def size(node: int) -> int:
        return ends[node] - node

    def children(first: int, end: int) -> Iterator[int]:
        while first < end:
            yield first
            first = ends[first]

    # Trees still to do, the next one last, each with the cached tokens it needs. All of them
    # hang on the path in the cache, so a pack may take from anywhere on it.
    todo: list[tuple[int, int]] = []

    def push(past: int, nodes: Iterable[int]) -> None:
        todo.extend((past, node) for node in sorted(nodes, key=lambda node: size(node) > budget))

    def take(room: int) -> list[int]:
        """The next trees that fit into a pass which has room for that many tokens."""
        taken: list[int] = []
        while todo and size(node := todo[-1][1]) <= room - len(taken):
            todo.pop()
            taken.extend(range(node, ends[node]))
        return taken

    push(0, children(0, len(forest)))
    while todo:
        past, node = todo[-1]
        if size(node) <= budget:
            yield Pass(past, np.array(take(budget), dtype=np.int64))
            continue
        todo.pop()
        trunk = [node]
        while below := list(children(node + 1, ends[node])):
            heir = max(below, key=size)
            if size(heir) <= budget:
                push(past + len(trunk), below)
                break
            push(past + len(trunk), (child for child in below if child != heir))
            trunk.append(heir)
            node = heir
        for first in range(0, len(trunk), budget):
            part = trunk[first : first + budget]
            branches = take(budget - len(part)) if first + budget >= len(trunk) else []
            yield Pass(past + first, np.array(part + branches, dtype=np.int64))
