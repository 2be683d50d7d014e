"""Token paths with common beginnings stored once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """Tokens in depth-first order: what is below token v is v + 1 ... ends[v] - 1.

    So v sees u (u is v or above it) exactly if u <= v < ends[u].
    """

    tokens: Ints
    depths: Ints
    ends: Ints
    parents: Ints
    """The place above each; -1 for a root."""

    def __len__(self) -> int:
        return len(self.tokens)


class Trie:
    """Grows path by path; nodes are numbered as they come, parents before children."""

    ROOT = -1
    """Before the first token."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def insert(self, node: int, tokens: Iterable[int]) -> list[int]:
        """The nodes of these tokens after `node`."""
        path = []
        for token in tokens:
            child = self._children.setdefault((node, token), len(self.tokens))
            if child == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(node)
            path.append(child)
            node = child
        return path

    def above(self, targets: Ints) -> tuple[Forest, Ints]:
        """What is needed to predict the targets: all that is above them.

        Returns it with the place in it of the token before each target. Targets themselves are
        in it only if they are above others.
        """
        parents = np.array(self.parents, dtype=np.int64)
        before = parents[targets]
        asked = np.zeros(len(parents), dtype=bool)
        asked[before] = True

        sizes: list[int] = asked.astype(np.int64).tolist()  # of what is needed below each node
        for node in range(len(sizes) - 1, -1, -1):
            if sizes[node]:
                sizes[node] += not asked[node]
                if (parent := self.parents[node]) != self.ROOT:
                    sizes[parent] += sizes[node]

        places, depths = [0] * len(sizes), [0] * len(sizes)
        free = [0] * (len(sizes) + 1)  # the next place below each node; the last is the root's
        for node, parent in enumerate(self.parents):
            places[node] = free[parent]
            free[parent] += sizes[node]
            free[node] = places[node] + 1
            depths[node] = 0 if parent == self.ROOT else depths[parent] + 1

        place, size = np.array(places, dtype=np.int64), np.array(sizes, dtype=np.int64)
        needed = np.flatnonzero(size)
        order = needed[np.argsort(place[needed])]
        above = parents[order]
        forest = Forest(
            tokens=np.array(self.tokens, dtype=np.int64)[order],
            depths=np.array(depths, dtype=np.int64)[order],
            ends=np.arange(len(order)) + size[order],
            parents=np.where(above == self.ROOT, self.ROOT, place[above]),
        )
        return forest, place[before]
