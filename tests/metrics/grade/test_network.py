"""The network against the equations written out, one number at a time."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.grade.config import GradeConfig
from causerie.metrics.grade.network import (
    GraphBatch,
    GraphBranch,
    Network,
    drop_edges,
    margin_loss,
    normalised,
)
from causerie.metrics.grade.scorer import Scorer
from causerie.metrics.grade.topics import Topics

sys.path.insert(0, str(Path(__file__).parent))
from small_graph import DIMENSION, exchange_of, small_graph

CONFIG = GradeConfig(
    interaction="towers", tuning="frozen", pooling="mean", width=6, hidden=12, depth=2, heads=2,
    nearest=2,
)  # fmt: skip
TALKS = (
    ("I have a dog.", "The moon!", "We walk the dog and a cat."),
    ("The animal and the star.", "A pet, a cat."),
    ("I have a dog and a cat.", "Oh."),
    ("Oh.", "The zoo."),
    ("Oh.", "Hm."),
)


@pytest.fixture(scope="module")
def scorer(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    engines = Engines(Settings(encoder=str(tiny_bert), offline=True, threads=1))
    torch.manual_seed(0)
    topics = Topics(small_graph(tmp_path_factory.mktemp("graph") / "small"), CONFIG.cap)
    return Scorer(engines.new_encoder(), topics, CONFIG)


def elu(x: float) -> float:
    return x if x > 0 else math.exp(x) - 1


def naive_normal(adjacency: np.ndarray) -> np.ndarray:
    """Eq. 5 with whole matrices."""
    size = len(adjacency)
    root = np.diag([1 / math.sqrt(sum(row) + 1) for row in adjacency])
    return root @ (adjacency + np.eye(size)) @ root


def naive_branch(
    branch: GraphBranch, start: np.ndarray, adjacency: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 3 and 5 to 10 for one graph; `start` is (nodes, 1 + K, dimension)."""
    state = {k: v.detach().double().numpy() for k, v in branch.state_dict().items()}
    count, _, size = start.shape
    normal = naive_normal(adjacency)
    h = []
    for node in range(count):
        x = start[node, 0].copy()
        for k in range(len(branch.means)):
            x += state[f"means.{k}.weight"] @ start[node, k + 1] + state[f"means.{k}.bias"]
        h.append(x)
    seen = np.zeros((count, count))
    for number in range(len(branch.layers)):
        w, v = state[f"layers.{number}.w.weight"], state[f"layers.{number}.v.weight"]
        heads, part = state[f"layers.{number}.a_i"].shape
        new = []
        for i in range(count):
            z = np.zeros(size)
            neighbours = [j for j in range(count) if j == i or adjacency[i, j] > 0]
            for head in range(heads):
                own = slice(head * part, (head + 1) * part)
                a = np.concatenate(
                    [state[f"layers.{number}.a_i"][head], state[f"layers.{number}.a_j"][head]]
                )
                e = []
                for j in neighbours:
                    dot = a @ np.concatenate([(w @ h[i])[own], (w @ h[j])[own]])
                    e.append(normal[i, j] * (dot if dot > 0 else 0.2 * dot))
                alpha = np.exp(e) / np.exp(e).sum()
                for j, share in zip(neighbours, alpha, strict=True):
                    z[own] += share * (w @ h[j])[own]
                    seen[i, j] += share / heads / len(branch.layers)
            new.append(np.array([elu(x) for x in v @ h[i] + z]))
        h = new
    mean = np.mean(h, axis=0) if count else state["nothing"]
    v_g = state["fc_0.weight"] @ mean + state["fc_0.bias"]
    return np.array([elu(x) for x in v_g]), seen


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_normalisation(size: int, seed: int) -> None:
    upper = np.triu(np.random.default_rng(seed).random((size, size)), 1)
    adjacency = upper + upper.T
    ours = normalised(torch.from_numpy(adjacency).unsqueeze(0))[0]
    np.testing.assert_allclose(ours, naive_normal(adjacency), rtol=1e-6)


def test_neighbour_means_are_those_of_the_graph(scorer: Scorer) -> None:
    """Eq. 2: of dog, one hop away pet and leash, two hops away cat, animal and walk."""
    graph = scorer.topics.graph
    (pair,) = scorer.pairs([exchange_of("Oh.", "A dog.")])
    batch = scorer.collate([pair.graph])

    def vector(word: str) -> np.ndarray:
        return graph.vectors([graph.find(word) or 0])[0]

    def cosine(word: str) -> float:
        one, other = vector("dog"), vector(word)
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    near = [vector("pet"), vector("leash")]
    far = [vector(w) for w in sorted(["cat", "animal", "walk"], key=cosine)[-CONFIG.nearest :]]
    expected = [vector("dog"), np.mean(near, axis=0), np.mean(far, axis=0)]
    np.testing.assert_allclose(batch.vectors[0, 0], expected, rtol=1e-5, atol=1e-6)


def test_a_batch_of_graphs_is_what_each_is_alone(scorer: Scorer) -> None:
    """All shapes at once, one-sided and empty ones too, against the equations."""
    pairs = scorer.pairs([exchange_of(*texts) for texts in TALKS])
    branch = scorer.network.graph
    assert branch is not None
    branch.eval()
    torch.nn.init.normal_(branch.nothing)
    with torch.inference_mode():
        v_g, attention = branch(scorer.collate([pair.graph for pair in pairs]))
    for row, pair in enumerate(pairs):
        nodes = pair.graph.nodes
        start = scorer._node_vectors(nodes)[1:].astype(np.float64)
        expected, seen = naive_branch(branch, start, pair.graph.adjacency().astype(np.float64))
        np.testing.assert_allclose(v_g[row], expected, rtol=1e-4, atol=1e-5)
        count = len(nodes)
        np.testing.assert_allclose(attention[row, :count, :count], seen, rtol=1e-4, atol=1e-5)


@settings(max_examples=25)
@given(st.permutations(range(4)), st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(order: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    branch = GraphBranch(DIMENSION, CONFIG).eval()
    vectors, edges = torch.randn(1, 4, 3, DIMENSION), torch.rand(1, 4, 4).triu(1)
    edges = edges + edges.transpose(1, 2)
    present = torch.ones(1, 4, dtype=torch.bool)
    with torch.inference_mode():
        one, _ = branch(GraphBatch(vectors, present, edges))
        moved = GraphBatch(vectors[:, order], present, edges[:, order][:, :, order])
        other, _ = branch(moved)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_edges_are_dropped_both_ways_and_in_training_only(scorer: Scorer) -> None:
    torch.manual_seed(0)
    edges = torch.ones(200, 5, 5) - torch.eye(5)
    kept = drop_edges(edges, 0.8)
    assert torch.equal(kept, kept.transpose(1, 2))
    assert float(kept.sum() / edges.sum()) == pytest.approx(0.8, abs=0.03)
    assert torch.equal(drop_edges(edges, 1.0), edges)
    assert not drop_edges(edges, 0.0).any()
    pairs = scorer.pairs([exchange_of(*TALKS[0])] * 8)
    branch, batch = scorer.network.graph, scorer.collate([pair.graph for pair in pairs])
    assert branch is not None
    with torch.inference_mode():
        assert len(branch.train()(batch)[0].unique(dim=0)) > 1
        assert len(branch.eval()(batch)[0].unique(dim=0)) == 1


def test_loss() -> None:
    true, false = torch.tensor([0.9, 0.5, 0.2]), torch.tensor([0.1, 0.45, 0.6])
    expected = (0 + 0.05 + 0.5) / 3
    assert float(margin_loss(true, false, 0.1)) == pytest.approx(expected, rel=1e-5)


def test_scores_are_the_perceptron_of_both_branches(scorer: Scorer) -> None:
    """Eq. 11, and the comparison of utterances, by matrices of one exchange."""
    (pair,) = scorer.pairs([exchange_of(*TALKS[0])])
    state = {k: v.double().numpy() for k, v in scorer.network.state_dict().items()}

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        return state[f"{name}.weight"] @ x + state[f"{name}.bias"]

    encoded = scorer.encoder.encode([((text,),) for text in TALKS[0]], "mean").astype(np.float64)
    older, newer, response = (v / np.linalg.norm(v) for v in encoded)
    scale = math.sqrt(len(older))
    u, v, r = (layer("utterances.narrow", scale * x) for x in (newer, older, response))
    cosines = scale * np.array([newer @ response, older @ response])
    seen = np.concatenate([u, v, r, u * r, v * r, abs(u - r), abs(v - r), cosines])
    v_c = np.vectorize(elu)(layer("utterances.fc", seen))
    assert scorer.network.graph is not None
    start = scorer._node_vectors(pair.graph.nodes)[1:].astype(np.float64)
    v_g, _ = naive_branch(scorer.network.graph, start, pair.graph.adjacency().astype(float))
    hidden = np.vectorize(elu)(layer("fc_1", np.concatenate([v_c, v_g])))
    (logit,) = layer("fc_3", np.vectorize(elu)(layer("fc_2", hidden)))
    assert scorer.scores([pair])[0] == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-4)


@pytest.mark.parametrize(
    "changed",
    [
        {"graph_branch": False}, {"hops": 0}, {"hops": 1}, {"hops": 1, "nearest": 20},
        {"hop_weights": False}, {"interaction": "cross"}, {"history": 1}, {"history": 4},
    ],
)  # fmt: skip
def test_ablations_score_and_learn(scorer: Scorer, changed: dict[str, object]) -> None:
    torch.manual_seed(0)
    one = Scorer(scorer.encoder, scorer.topics, replace(CONFIG, **changed))  # type: ignore[arg-type]
    pairs = one.pairs([exchange_of(*texts) for texts in TALKS])
    judged = one.judge(pairs)
    assert all(0 < each.score < 1 for each in judged)
    assert all((each.attention is None) == ("graph_branch" in changed) for each in judged)
    one.network.train()
    one.outputs(pairs, one.vectors).scores.sum().backward()
    silent = [n for n, p in one.network.named_parameters() if p.grad is None or not p.grad.any()]
    assert silent == []


def test_hop_weights_tell_near_from_far(scorer: Scorer) -> None:
    """Without them the same word and an unrelated one have edges of the same weight."""
    pairs = scorer.pairs([exchange_of("The dog.", "The dog."), exchange_of("The dog.", "A star.")])
    graphs = [pair.graph for pair in pairs]
    near, far = scorer.collate(graphs).adjacency[:, 0, 1].tolist()
    assert (near, far) == (1.0, pytest.approx(1 / 20))
    plain = Scorer(scorer.encoder, scorer.topics, replace(CONFIG, hop_weights=False))
    assert plain.collate(graphs).adjacency[:, 0, 1].tolist() == [1.0, 1.0]


def test_heads_divide_the_dimension() -> None:
    with pytest.raises(CauserieError, match="heads divide the dimension of the graph's vectors, 8"):
        Network(4, DIMENSION, replace(CONFIG, heads=3))
