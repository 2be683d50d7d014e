"""Small graphs for tests, and naive answers about them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from causerie.graph import Graph
from causerie.graph.about import Source
from causerie.graph.builder import Builder
from causerie.graph.edges import Edge

Pairs = Iterable[tuple[str, str]]


def built(folder: Path, edges: Iterable[Edge], vectors: dict[str, list[float]] | None = None):
    builder = Builder()
    builder.add(Source("test", "CC0-1.0"), edges)
    given = [(word, np.array(v, dtype=np.float32)) for word, v in (vectors or {}).items()]
    builder.write(folder, given, "by hand")
    return Graph.open(folder)


def linked(folder: Path, pairs: Pairs, vectors: dict[str, list[float]] | None = None) -> Graph:
    return built(folder, [Edge(a, "RelatedTo", b) for a, b in pairs], vectors)


def distances(pairs: Pairs, start: str) -> dict[str, int]:
    """Return the distances from one word to all others, edge by edge until nothing changes."""
    pairs = list(pairs)
    found = {start: 0}
    for _ in pairs:
        for one, other in [*pairs, *[(b, a) for a, b in pairs]]:
            if one in found and found[one] + 1 < found.get(other, len(pairs) + 2):
                found[other] = found[one] + 1
    return found
