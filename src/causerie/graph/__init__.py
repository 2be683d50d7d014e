"""A commonsense graph: words, what relates them, how far they are from each other.

`Graph.open` gives one from memory-mapped files; `Hops` measures distances in it, and
`Surroundings` gives the vectors of a word and of what is around it.
"""

from __future__ import annotations

from causerie.graph.graph import Graph, Neighbour
from causerie.graph.hops import Hops
from causerie.graph.surroundings import Surroundings

__all__ = ["Graph", "Hops", "Neighbour", "Surroundings"]
