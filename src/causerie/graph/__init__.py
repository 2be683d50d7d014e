"""Commonsense graphs: words, the relations between them, and how far apart they are.

`Graph.open` opens one from memory-mapped files, `Hops` measures distances in it, and
`Surroundings` computes mean vectors of the words around a word. GRADE reasons over them.
"""

from __future__ import annotations

from causerie.graph.graph import Graph, Neighbour
from causerie.graph.hops import Hops
from causerie.graph.surroundings import Surroundings

__all__ = ["Graph", "Hops", "Neighbour", "Surroundings"]
