"""Mean vectors of the words around a word, from which GRADE initialises its nodes (eq. 2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from causerie.graph.graph import Graph
from causerie.graph.hops import Hops

NEAREST = 10
REMEMBERED_MEANS = 1 << 16
_CHUNK = 1 << 14
"""Number of vectors in memory at a time."""


class Surroundings:
    """Mean vectors of a node's most similar neighbours at a given distance."""

    def __init__(self, graph: Graph, hops: Hops | None = None, nearest: int = NEAREST) -> None:
        """`hops` may be shared; the `nearest` most similar neighbours at a distance count."""
        self.graph, self.nearest = graph, nearest
        self._hops = hops or Hops(graph)
        self._mean = lru_cache(REMEMBERED_MEANS)(self._compute)

    def mean(self, node: int, distance: int) -> NDArray[np.float32]:
        """Return the mean of the most similar nodes at that distance; zeros if there are none."""
        return self._mean(node, distance)

    def similar(self, node: int, distance: int) -> NDArray[np.int32]:
        """Return the nodes at that distance with the highest cosine similarity, best first.

        Nodes without a vector are left out.
        """
        own = _unit(self.graph.vectors([node]))[0]
        ring = self._hops.ring(node, distance)
        ring = ring[self.graph.arrays["scales"][ring] > 0]
        cosines = np.concatenate(
            [
                _unit(self.graph.vectors(ring[start : start + _CHUNK])) @ own
                for start in range(0, len(ring), _CHUNK)
            ]
            or [np.empty(0, dtype=np.float32)]
        )
        best = np.argsort(-cosines, kind="stable")[: self.nearest]
        nodes: NDArray[np.int32] = ring[best]
        return nodes

    def _compute(self, node: int, distance: int) -> NDArray[np.float32]:
        nodes = self.similar(node, distance)
        vectors = self.graph.vectors(nodes)
        mean: NDArray[np.float32] = (
            vectors.mean(axis=0) if len(nodes) else np.zeros(self.graph.dimension, np.float32)
        )
        mean.setflags(write=False)  # it is cached
        return mean


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
