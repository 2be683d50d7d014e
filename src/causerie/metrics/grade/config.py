"""How `grade` is trained; the defaults are the paper's, for its backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causerie.errors import CauserieError
from causerie.graph.hops import MOST_HOPS
from causerie.options import option
from causerie.training.config import EncoderConfig

HEAD = ("interaction", "history", "width", "hidden", "graph_branch", "hops", "depth", "heads")
"""Settings that must agree for the weights of what stands on the encoder to fit."""


@dataclass(frozen=True)
class GradeConfig(EncoderConfig):
    interaction: Literal["cross", "towers"] = option(
        "cross",
        "cross: the encoder reads context and response together, as in the paper; towers: it reads "
        "each utterance by itself and a small network compares them",
    )
    history: int = option(2, "utterances of context", least=1)
    width: int = option(128, "of the vectors that towers compares", least=1)
    hidden: int = option(
        512,
        "of the perceptron: both branches have it, then twice that, it, and a quarter of it",
        least=8,
    )
    dropout: float = option(
        0.0, "before each layer of the perceptron, and in the comparison of towers"
    )
    graph: str = option("everyday", "the commonsense graph: its name or its folder")
    graph_sha256: str | None = option(
        None, "of the graph's files; training writes it, another graph is then refused"
    )
    graph_branch: bool = option(True, "false: the ablation that sees utterances only")
    hops: int = option(
        2,
        "neighbours up to so far away add to the vector of a topic (K); 0 and 1 are ablations",
        least=0,
    )
    nearest: int = option(10, "how many of them at each distance (N_1 and N_2)", least=1)
    hop_weights: bool = option(True, "false: the ablation in which all edges weigh the same")
    cap: int = option(5, "paths that are longer count as none", least=1)
    depth: int = option(3, "layers of graph attention", least=1)
    heads: int = option(
        4, "of the attention; they divide the dimension of the graph's vectors", least=1
    )
    keep_edges: float = option(
        0.8, "share of the edges that are there in a step of training (DropEdge)"
    )
    negatives: Literal["both", "lexical", "embedding", "random"] = option(
        "both",
        "false responses: lexical and embedding, one of each, or only one kind; random, an "
        "ablation, two of them",
    )
    length_matched: bool = option(
        False,
        "of the candidates for a lexical or an embedding negative take the one nearest in length "
        "to the true response",
    )
    tuples: int | None = option(None, "train on so many, drawn at random [all]", least=2)
    margin: float = option(0.1, "by which a true response should score above a false one", least=0)
    epochs: float = option(5.0, "passes over the tuples")
    learning_rate: float = option(2e-5, "highest learning rate, after the warm-up")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap > MOST_HOPS:
            raise CauserieError(f"cap is at most {MOST_HOPS}, not {self.cap}")
        if self.hops > self.cap:
            raise CauserieError(f"hops is at most cap ({self.cap}), not {self.hops}")
        if not (0 <= self.keep_edges <= 1 and 0 <= self.dropout < 1):
            raise CauserieError("keep_edges is from 0 to 1, dropout from 0 to below 1")
