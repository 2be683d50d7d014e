"""The topic graph of an exchange (section 3.2): keywords, and how far they are from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from causerie.dialogue import Exchange
from causerie.graph import Graph, Hops
from causerie.text.keywords import KeywordExtractor

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_PATH_WEIGHT = 1 / 20
"""Of an edge between topics that no path connects; as in the published code."""
REMEMBERED_TEXTS = 1 << 16


@dataclass(frozen=True, eq=False)
class TopicGraph:
    """What a context and a response are about, as nodes of a commonsense graph.

    Every topic of the context has an edge with every topic of the response. A word that both
    have is two nodes, 0 hops apart.
    """

    context: tuple[int, ...]
    response: tuple[int, ...]
    hops: NDArray[np.int8]
    """(context, response): the steps between them; `NO_PATH`, -1, where there is no path."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Those of the context, then those of the response."""
        return (*self.context, *self.response)

    @property
    def weights(self) -> NDArray[np.float32]:
        """Of the edges, like `hops` (eq. 4): the same word has 1, a neighbour 1/2."""
        hops = self.hops.astype(np.float32)
        weights: NDArray[np.float32] = np.where(
            hops < 0, np.float32(NO_PATH_WEIGHT), 1 / (1 + np.maximum(hops, 0))
        )
        return weights

    def adjacency(self, *, weighted: bool = True) -> NDArray[np.float32]:
        """A, over `nodes`: edges only between the two sides, both ways."""
        here, count = len(self.context), len(self.nodes)
        weights = self.weights if weighted else np.ones_like(self.weights)
        matrix = np.zeros((count, count), dtype=np.float32)
        matrix[:here, here:] = weights
        matrix[here:, :here] = weights.T
        return matrix


class Topics:
    """Makes topic graphs; keywords that the commonsense graph does not have are left out."""

    def __init__(self, graph: Graph, cap: int) -> None:
        self.graph, self.hops = graph, Hops(graph, cap)
        self._extractor = KeywordExtractor(graph.frequencies)
        self._of = lru_cache(REMEMBERED_TEXTS)(self._find)

    @property
    def sha256(self) -> str:
        """Of all of the graph's files that decide scores."""
        return self.graph.sha256

    def graphs(self, exchanges: Sequence[Exchange], history: int) -> list[TopicGraph]:
        """Of the response and the last `history` utterances before it, for each exchange."""
        return [self._connect(exchange, history) for exchange in exchanges]

    def of(self, text: str) -> tuple[int, ...]:
        """The nodes that an utterance is about, the best keyword first."""
        return self._of(text)

    def _connect(self, exchange: Exchange, history: int) -> TopicGraph:
        said = (self._of(turn.text) for turn in exchange.last(history))
        context = tuple(dict.fromkeys(node for nodes in said for node in nodes))
        response = self._of(exchange.response.text)
        return TopicGraph(context, response, self.hops.between(context, response))

    def _find(self, text: str) -> tuple[int, ...]:
        (keywords,) = self._extractor.extract([text])
        found = (self.graph.find(keyword.word) for keyword in keywords)
        return tuple(node for node in found if node is not None)
