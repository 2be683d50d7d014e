"""Distances between words in a graph, by bidirectional breadth-first search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError
from causerie.graph.graph import Graph

CAP = 5
MOST_HOPS = 127
"""Distances are stored in one signed byte."""
NO_PATH = -1
REMEMBERED_PAIRS = 1 << 18
REMEMBERED_NODES = 1 << 24
"""Number of nodes in cached rings: 64 MB."""


class Hops:
    """Distances in a graph, up to a cap, with a bounded cache."""

    def __init__(self, graph: Graph, cap: int = CAP) -> None:
        """A path longer than `cap` counts as no path; `cap` is at most `MOST_HOPS`."""
        if not 0 <= cap <= MOST_HOPS:
            raise CauserieError(f"hops are counted up to {MOST_HOPS}, not to {cap}")
        self.graph, self.cap = graph, cap
        self._rings: OrderedDict[tuple[int, int], NDArray[np.int32]] = OrderedDict()
        self._kept = 0
        self._distance = lru_cache(REMEMBERED_PAIRS)(self._search)

    def between(self, left: Sequence[int], right: Sequence[int]) -> NDArray[np.int8]:
        """Return the distances from each node of `left` (rows) to each of `right` (columns).

        A distance is 0 from a node to itself, 1 to a neighbour, and `NO_PATH` beyond the cap.
        """
        hops = np.empty((len(left), len(right)), dtype=np.int8)
        for row, one in enumerate(left):
            for column, other in enumerate(right):
                hops[row, column] = self._distance(min(one, other), max(one, other))
        return hops

    def path(self, one: int, other: int) -> list[int] | None:
        """Return a shortest path with both ends; None if there is none within the cap."""
        distance = self._distance(min(one, other), max(one, other))
        if distance == NO_PATH:
            return None
        path = [one]
        for left in range(distance - 1, -1, -1):
            steps = np.unique(self.graph.adjacent(np.array([path[-1]], dtype=np.int32)))
            path.append(int(_intersection(steps, self.ring(other, left))[0]))
        return path

    def ring(self, node: int, distance: int) -> NDArray[np.int32]:
        """Return the nodes at exactly that distance, sorted."""
        key = (node, distance)
        if key in self._rings:
            self._rings.move_to_end(key)
            return self._rings[key]
        if distance == 0:
            return np.array([node], dtype=np.int32)
        inner = self.ring(node, distance - 1)
        reached = np.zeros(len(self.graph), dtype=np.bool_)
        reached[self.graph.adjacent(inner)] = True
        # A neighbour of a ring lies in it, in the ring before or in the ring after.
        reached[inner] = False
        if distance > 1:
            reached[self.ring(node, distance - 2)] = False
        ring = np.flatnonzero(reached).astype(np.int32)
        self._rings[key] = ring
        self._kept += len(ring)
        while self._kept > REMEMBERED_NODES:
            self._kept -= len(self._rings.popitem(last=False)[1])
        return ring

    def _search(self, one: int, other: int) -> int:
        if one == other:
            return 0
        from_one = from_other = 0
        while from_one + from_other < self.cap:
            near, far = self.ring(one, from_one), self.ring(other, from_other)
            if not (len(near) and len(far)):
                return NO_PATH
            if len(near) <= len(far):
                from_one += 1
            else:
                from_other += 1
            # A shortest path has a node at these distances from its two ends.
            if len(_intersection(self.ring(one, from_one), self.ring(other, from_other))):
                return from_one + from_other
        return NO_PATH


def _intersection(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the common elements of two sorted arrays."""
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    if not len(few):
        return few
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    shared: NDArray[np.int32] = few[many[places] == few]
    return shared
