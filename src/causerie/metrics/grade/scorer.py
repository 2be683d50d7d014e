"""Encoder engine, commonsense graph and network together: exchanges in, coherence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from causerie.dialogue import Exchange
from causerie.engines.shapes import batches, filled, padded_length
from causerie.engines.texts import Texts
from causerie.errors import CauserieError
from causerie.graph import Graph, Surroundings
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.grade.network import GraphBatch, Network, Output
from causerie.metrics.grade.topics import TopicGraph, Topics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines
    from causerie.engines.encoder import Encoder, EncoderInput, Floats
    from causerie.models.artifact import Artifact
    from causerie.training.encoders import Vectors

NODES_AT_ONCE = 4096
"""That the network takes at a time, padding included."""


@dataclass(frozen=True, eq=False)
class Pair:
    """An exchange and what it is about."""

    exchange: Exchange
    graph: TopicGraph


@dataclass(frozen=True, eq=False)
class Judged:
    """What the network says about an exchange."""

    score: float
    attention: NDArray[np.float32] | None
    """Over the nodes of its topic graph."""


class Scorer:
    """The score of eq. 11. What the topics share (graph, paths) can serve several scorers."""

    def __init__(self, encoder: Encoder, topics: Topics, config: GradeConfig) -> None:
        self.encoder, self.topics, self.config = encoder, topics, config
        self.network = Network(encoder.dimension, topics.graph.dimension, config)
        self.network.to(encoder.device).eval()
        self.vectors: Vectors = self._encode
        """Where vectors of texts come from; training of a fixed encoder keeps them all."""
        self._surroundings = Surroundings(topics.graph, topics.hops, config.nearest)

    def pairs(self, exchanges: Sequence[Exchange]) -> list[Pair]:
        graphs = self.topics.graphs(exchanges, self.config.history)
        return [Pair(*both) for both in zip(exchanges, graphs, strict=True)]

    def outputs(self, pairs: Sequence[Pair], vectors: Vectors) -> Output:
        """With gradients where the vectors have them."""
        read = self._together if self.config.interaction == "cross" else self._apart
        utterances = read([pair.exchange for pair in pairs], vectors)
        graphs = [pair.graph for pair in pairs]
        batch = self.collate(graphs) if self.config.graph_branch else None
        output: Output = self.network(utterances, batch)
        return output

    def judge(self, pairs: Sequence[Pair]) -> list[Judged]:
        """All of them, in order, a part at a time."""
        judged: dict[int, Judged] = {}
        self.network.eval()
        for places in batches([len(pair.graph.nodes) for pair in pairs], NODES_AT_ONCE):
            part = [pairs[place] for place in places]
            with torch.inference_mode():
                output = self.outputs(filled(part), self.vectors)
            scores = output.scores.float().cpu().tolist()
            attention = None if output.attention is None else output.attention.float().cpu().numpy()
            for row, (place, pair) in enumerate(zip(places, part, strict=True)):
                count = len(pair.graph.nodes)
                seen = None if attention is None else attention[row, :count, :count].copy()
                judged[place] = Judged(scores[row], seen)
        return [judged[place] for place in range(len(pairs))]

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        return np.array([judged.score for judged in self.judge(pairs)], dtype=np.float32)

    def collate(self, graphs: Sequence[TopicGraph]) -> GraphBatch:
        """Padded by the largest; each distinct node is looked up once."""
        largest = padded_length(max(len(graph.nodes) for graph in graphs))
        places: dict[int, int] = {}
        index = np.zeros((len(graphs), largest), dtype=np.int64)
        present = np.zeros((len(graphs), largest), dtype=np.bool_)
        adjacency = np.zeros((len(graphs), largest, largest), dtype=np.float32)
        for row, graph in enumerate(graphs):
            count = len(graph.nodes)
            index[row, :count] = [places.setdefault(n, len(places) + 1) for n in graph.nodes]
            present[row, :count] = True
            adjacency[row, :count, :count] = graph.adjacency(weighted=self.config.hop_weights)
        arrays = (self._node_vectors(list(places))[index], present, adjacency)
        return GraphBatch(*(torch.from_numpy(a).to(self.encoder.device) for a in arrays))

    def _node_vectors(self, nodes: Sequence[int]) -> Floats:
        """(1 + nodes, 1 + K, dimension): zeros, then of each node its own and the means."""
        graph, hops = self.topics.graph, self.config.hops
        vectors = np.zeros((1 + len(nodes), 1 + hops, graph.dimension), dtype=np.float32)
        vectors[1:, 0] = graph.vectors(nodes)
        for k in range(1, hops + 1):
            for row, node in enumerate(nodes, start=1):
                vectors[row, k] = self._surroundings.mean(node, k)
        return vectors

    def _together(self, exchanges: Sequence[Exchange], vectors: Vectors) -> Tensor:
        inputs: list[EncoderInput] = [
            (tuple(turn.text for turn in e.last(self.config.history)), (e.response.text,))
            for e in exchanges
        ]
        return vectors(inputs).unsqueeze(1)

    def _apart(self, exchanges: Sequence[Exchange], vectors: Vectors) -> Tensor:
        texts = Texts()
        contexts = texts.contexts(exchanges, self.config.history)
        responses = texts.places(exchange.response.text for exchange in exchanges)
        found = texts.vectors(vectors(texts.inputs))
        return found[torch.cat([contexts, responses.unsqueeze(1)], dim=1)]

    def _encode(self, inputs: Sequence[EncoderInput]) -> Tensor:
        vectors = torch.from_numpy(self.encoder.encode(inputs, self.config.pooling))
        return vectors.to(self.encoder.device)


def open_topics(config: GradeConfig, graph: str | None = None) -> Topics:
    """The topics of the configured graph, or of the same one at another place."""
    topics = Topics(Graph.open(graph or config.graph), config.cap)
    if config.graph_sha256 not in (None, topics.sha256):
        raise CauserieError(
            f"grade was trained with another graph than {graph or config.graph}: name the right "
            "one (`--set grade.graph=FOLDER`), or train it again"
        )
    if not topics.graph.dimension:
        raise CauserieError(f"the graph {config.graph} has no vectors: build it with some")
    return topics


def restore(engines: Engines, artifact: Artifact, graph: str | None = None) -> Scorer:
    """The scorer as the artifact's training left it."""
    # "retrieved" was a setting of training in earlier artifacts, and decides no score.
    options = {name: value for name, value in artifact.options.items() if name != "retrieved"}
    config = GradeConfig(**options)
    encoder = engines.tuned_encoder(artifact, config.encoder_tuning, config.window)
    scorer = Scorer(encoder, open_topics(config, graph), config)
    scorer.network.load_state_dict(artifact.part("network"))
    return scorer
