"""The network (sections 3.1, 3.3 and 3.4): two branches and a perceptron on both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from causerie.errors import CauserieError
from causerie.metrics.grade.config import GradeConfig


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Topic graphs, padded to the largest of them."""

    vectors: Tensor
    """(graphs, nodes, 1 + K, dimension): of each node its own, and the means of eq. 2."""
    present: Tensor
    """(graphs, nodes): which nodes are no padding."""
    adjacency: Tensor
    """(graphs, nodes, nodes): A, without self-loops (eq. 4)."""


@dataclass(frozen=True, eq=False)
class Output:
    scores: Tensor
    """One per exchange, 0 to 1."""
    attention: Tensor | None
    """(graphs, nodes, nodes): what each node (rows) takes from each other, mean over layers and
    heads; None without a graph branch."""


def drop_edges(adjacency: Tensor, keep: float) -> Tensor:
    """DropEdge: every undirected edge stays with that probability."""
    chances = torch.rand_like(adjacency).triu(1)
    return adjacency * (chances + chances.transpose(1, 2) < keep)


def normalised(adjacency: Tensor) -> Tensor:
    """Eq. 5: with self-loops, divided by the roots of the degrees at both ends."""
    degrees = adjacency.sum(-1) + 1
    scale = degrees.rsqrt()
    loops = torch.eye(adjacency.shape[-1], device=adjacency.device)
    return scale.unsqueeze(-1) * (adjacency + loops) * scale.unsqueeze(-2)


class AttentionLayer(nn.Module):
    """Eq. 6 to 9; the heads share out the dimensions."""

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.w = nn.Linear(dimension, dimension, bias=False)
        self.v = nn.Linear(dimension, dimension, bias=False)
        # a of eq. 8, cut into what is for node i and what is for node j
        self.a_i = nn.Parameter(torch.empty(heads, dimension // heads))
        self.a_j = nn.Parameter(torch.empty(heads, dimension // heads))
        nn.init.xavier_uniform_(self.a_i)
        nn.init.xavier_uniform_(self.a_j)

    def forward(self, nodes: Tensor, normal: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
        """New vectors (graphs, nodes, dimension), attention (graphs, heads, nodes, nodes)."""
        seen = self.w(nodes).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        by_i = (seen * self.a_i.unsqueeze(1)).sum(-1).unsqueeze(-1)
        by_j = (seen * self.a_j.unsqueeze(1)).sum(-1).unsqueeze(-2)
        e = normal.unsqueeze(1) * functional.leaky_relu(by_i + by_j, 0.2)  # eq. 8
        e = e.masked_fill(~neighbours.unsqueeze(1), float("-inf"))
        attention = e.softmax(-1)  # eq. 7
        z = (attention @ seen).transpose(1, 2).flatten(-2)  # eq. 6
        return functional.elu(self.v(nodes) + z), attention  # eq. 9


class GraphBranch(nn.Module):
    """v_g: what the topics say about the transition from context to response."""

    def __init__(self, dimension: int, config: GradeConfig) -> None:
        super().__init__()
        if dimension % config.heads:
            raise CauserieError(
                f"heads divide the dimension of the graph's vectors, {dimension}: "
                f"{config.heads} do not"
            )
        self.keep_edges = config.keep_edges
        self.means = nn.ModuleList(nn.Linear(dimension, dimension) for _ in range(config.hops))
        self.layers = nn.ModuleList(
            AttentionLayer(dimension, config.heads) for _ in range(config.depth)
        )
        self.nothing = nn.Parameter(torch.zeros(dimension))
        """Stands for a graph without nodes."""
        self.fc_0 = nn.Linear(dimension, config.hidden)

    def forward(self, graphs: GraphBatch) -> tuple[Tensor, Tensor]:
        """v_g (graphs, hidden), and the mean attention (graphs, nodes, nodes)."""
        adjacency = graphs.adjacency
        if self.training:
            adjacency = drop_edges(adjacency, self.keep_edges)
        normal = normalised(adjacency)
        neighbours = normal > 0
        h = graphs.vectors[:, :, 0]
        for k, w in enumerate(self.means, start=1):
            h = h + w(graphs.vectors[:, :, k])  # eq. 3
        attentions = []
        for layer in self.layers:
            h, attention = layer(h, normal, neighbours)
            attentions.append(attention.mean(1))
        mean = self.pooled(h, graphs.present)
        return functional.elu(self.fc_0(mean)), torch.stack(attentions).mean(0)  # eq. 10

    def pooled(self, h: Tensor, present: Tensor) -> Tensor:
        """The mean over the nodes that are there; what was learned for none where none is."""
        counts = present.sum(-1, keepdim=True)
        mean = (h * present.unsqueeze(-1)).sum(1) / counts.clamp(min=1)
        return torch.where(counts > 0, mean, self.nothing)


class CrossBranch(nn.Module):
    """v_c of the paper: the encoder has read context and response together (eq. 1)."""

    def __init__(self, dimension: int, config: GradeConfig) -> None:
        super().__init__()
        self.fc = nn.Linear(dimension, config.hidden)

    def forward(self, vectors: Tensor) -> Tensor:
        """Read vectors of shape (exchanges, 1, dimension)."""
        return functional.elu(self.fc(vectors.squeeze(1)))


class TowersBranch(nn.Module):
    """v_c where the encoder has read each utterance by itself: a comparison of their vectors.

    It sees each vector made narrow, the products and differences of the response and each
    utterance of the context, and their cosines.
    """

    def __init__(self, dimension: int, config: GradeConfig) -> None:
        super().__init__()
        self.narrow = nn.Linear(dimension, config.width)
        seen = (1 + 3 * config.history) * config.width + config.history
        self.dropout = nn.Dropout(config.dropout)
        self.fc = nn.Linear(seen, config.hidden)

    def forward(self, vectors: Tensor) -> Tensor:
        """(exchanges, history + 1, dimension): the newest utterance first, the response last."""
        units = functional.normalize(vectors, dim=-1)
        scale = vectors.shape[-1] ** 0.5
        narrow = self.narrow(scale * units)
        context, response = narrow[:, :-1], narrow[:, -1:]
        cosines = (units[:, :-1] * units[:, -1:]).sum(-1)
        parts = (narrow, context * response, (context - response).abs())
        seen = self.dropout(torch.cat([part.flatten(1) for part in parts], dim=-1))
        # a cosine is one number among many hundred: as large as the vectors are long
        return functional.elu(self.fc(torch.cat([seen, scale * cosines], dim=-1)))


class Network(nn.Module):
    """Both branches, and the perceptron of eq. 11."""

    def __init__(self, encoder_dimension: int, graph_dimension: int, config: GradeConfig) -> None:
        super().__init__()
        branch = {"cross": CrossBranch, "towers": TowersBranch}[config.interaction]
        self.utterances = branch(encoder_dimension, config)
        self.graph = GraphBranch(graph_dimension, config) if config.graph_branch else None
        branches = 2 if config.graph_branch else 1
        self.dropout = nn.Dropout(config.dropout)
        self.fc_1 = nn.Linear(branches * config.hidden, config.hidden)
        self.fc_2 = nn.Linear(config.hidden, config.hidden // 4)
        self.fc_3 = nn.Linear(config.hidden // 4, 1)

    def forward(self, vectors: Tensor, graphs: GraphBatch | None) -> Output:
        """Without a graph branch, graphs are not looked at."""
        v = self.utterances(vectors)
        attention = None
        if self.graph is not None:
            v_g, attention = self.graph(graphs)
            v = torch.cat([v, v_g], dim=-1)
        hidden = functional.elu(self.fc_1(self.dropout(v)))
        hidden = functional.elu(self.fc_2(self.dropout(hidden)))
        scores = torch.sigmoid(self.fc_3(self.dropout(hidden))).squeeze(-1)
        return Output(scores, attention)


def margin_loss(true: Tensor, false: Tensor, margin: float) -> Tensor:
    """Eq. 12."""
    return functional.relu(false - true + margin).mean()
