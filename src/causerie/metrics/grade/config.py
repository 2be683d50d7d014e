"""How `grade` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from causerie.errors import CauserieError
from causerie.graph.hops import MOST_HOPS
from causerie.training.encoderconfig import EncoderConfig

Interaction = Literal["cross", "towers"]
Negatives = Literal["both", "lexical", "embedding", "random"]
HEAD = ("interaction", "history", "width", "hidden", "graph_branch", "hops", "depth", "heads")
"""Settings that must agree for the weights of what stands on the encoder to fit."""
_LEAST = {
    "window": 8, "history": 1, "width": 1, "hidden": 8, "hops": 0, "nearest": 1, "cap": 1,
    "depth": 1, "heads": 1, "retrieved": 1, "tuples": 2, "batch": 1, "patience": 1,
}  # fmt: skip
"""The least that each can be."""


@dataclass(frozen=True)
class GradeConfig(EncoderConfig):
    interaction: Interaction = "cross"
    """`cross`: the encoder reads context and response together, as in the paper.
    `towers`: it reads each utterance by itself and a small network compares them."""
    history: int = 2
    """Utterances of context."""
    width: int = 128
    """Of the vectors that `towers` compares."""
    hidden: int = 512
    """Of the perceptron: both branches have it, then twice that, it, and a quarter of it."""
    dropout: float = 0.0
    """Before each layer of the perceptron, and in the comparison of `towers`."""
    graph: str = "everyday"
    """The commonsense graph: its name or its folder."""
    graph_sha256: str | None = None
    """Of the graph's files; training writes it, another graph is then refused."""
    graph_branch: bool = True
    """False: the ablation that sees utterances only."""
    hops: int = 2
    """Neighbours up to so far away add to the vector of a topic (K); 0 and 1 are ablations."""
    nearest: int = 10
    """How many of them at each distance (N_1 and N_2)."""
    hop_weights: bool = True
    """False: the ablation in which all edges weigh the same."""
    cap: int = 5
    """Paths that are longer count as none."""
    depth: int = 3
    """Layers of graph attention."""
    heads: int = 4
    """Of the attention; they divide the dimension of the graph's vectors."""
    keep_edges: float = 0.8
    """Share of the edges that are there in a step of training (DropEdge)."""
    negatives: Negatives = "both"
    """False responses: `lexical` and `embedding`, one of each, or only one kind; `random`, an
    ablation, two of them."""
    retrieved: int = 20
    """Utterances in the list whose middle is the lexical negative."""
    tuples: int | None = None
    """Train on so many, drawn at random; None: on all."""
    margin: float = 0.1
    """By which a true response should score above a false one."""
    epochs: float = 5.0
    learning_rate: float = 2e-5

    def __post_init__(self) -> None:
        kinds = {"interaction": get_args(Interaction), "negatives": get_args(Negatives)}
        self.check(kinds, _LEAST)
        if self.cap > MOST_HOPS:
            raise CauserieError(f"cap is at most {MOST_HOPS}, not {self.cap}")
        if self.hops > self.cap:
            raise CauserieError(f"hops is at most cap ({self.cap}), not {self.hops}")
        if not (0 <= self.keep_edges <= 1 and 0 <= self.dropout < 1):
            raise CauserieError("keep_edges is from 0 to 1, dropout from 0 to below 1")
        if not self.margin >= 0:
            raise CauserieError(f"margin is at least 0, not {self.margin}")
