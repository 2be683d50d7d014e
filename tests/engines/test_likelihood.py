"""The likelihood engine against one plain forward pass per path."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Turn
from causerie.engines import Engines, counted_cuts
from causerie.engines.dialoguetree import DialogueTree
from causerie.engines.likelihood import Likelihood
from causerie.engines.settings import Settings
from causerie.engines.tree import Segment, Tree
from causerie.errors import CauserieError
from engines.oracle import VOCABULARY, Network, agrees, load, one_by_one, path_of, seen, trees

some = settings(max_examples=40)


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def network(request, tiny_gpt2, tiny_llama) -> Network:
    return load({"gpt2": tiny_gpt2, "llama": tiny_llama}[request.param])


@some
@given(
    tree=trees(),
    budget=st.one_of(st.integers(1, 12), st.integers(13, 600)),
    window=st.integers(16, 128),
    seed=st.integers(0, 1_000),
)
def test_equals_one_by_one(network, tree, budget, window, seed):
    cut = replace(network, window=window)
    engine = Likelihood(cut, budget=budget)
    nodes = list(range(1, len(tree)))
    random.Random(seed).shuffle(nodes)
    half = len(nodes) // 2
    scores = engine.score(tree, segments=nodes[:half], paths=nodes[half:])
    for node in nodes[:half]:
        agrees(scores.segment(node), one_by_one(cut, tree.prefix, path_of(tree, node))[-1])
    for node in nodes[half:]:
        parts = one_by_one(cut, tree.prefix, path_of(tree, node))
        whole = (sum(total for total, _ in parts), sum(count for _, count in parts))
        agrees(scores.path(node), whole)


@some
@given(tree=trees(longest=60, nodes=12), window=st.integers(16, 64), data=st.data())
def test_what_is_cut_depends_on_the_path_alone(network, tree, window, data):
    cut = replace(network, window=window)
    together = Likelihood(cut).score(tree, segments=range(1, len(tree)))
    node = data.draw(st.integers(1, len(tree) - 1))
    alone = Tree(tree.prefix)
    where = alone.ROOT
    for segment in path_of(tree, node):
        where = alone.add(where, segment)
    by_itself = Likelihood(cut, budget=7).score(alone, segments=[where]).segment(where)
    agrees(together.segment(node), (by_itself.total, by_itself.count))


@some
@given(tree=trees(nodes=10), budget=st.integers(1, 50))
def test_each_distinct_beginning_is_computed_once(network, tree, budget):
    """And nothing else: not the last token of a path, which predicts nothing."""
    engine = Likelihood(replace(network, window=10_000), budget=budget)  # so nothing is cut
    beginnings = set()
    for node in range(1, len(tree)):
        before = list(tree.prefix)
        for segment in path_of(tree, tree.parent(node)):
            before.extend(segment.tokens)
        segment = tree.segment(node)
        for last in range(segment.start, segment.stop):
            known = tuple(before) + segment.tokens[:last]
            beginnings.update(known[:length] for length in range(1, len(known) + 1))
    engine.score(tree, segments=range(1, len(tree)))
    assert engine.tokens_computed == len(beginnings)


def random_segments(seed: int, lengths: list[int]) -> list[Segment]:
    draw = random.Random(seed)
    return [Segment.of(draw.randrange(VOCABULARY) for _ in range(n)) for n in lengths]


def test_a_long_conversation_is_cut_by_whole_turns_and_counted(network):
    engine = Likelihood(network, budget=50)
    tree = Tree((1, 2))
    node, nodes = tree.ROOT, []
    for segment in random_segments(0, [11] * (3 * network.window // 11)):
        node = tree.add(node, segment)
        nodes.append(node)
    with counted_cuts() as cuts:
        scores = engine.score(tree, segments=nodes, paths=[nodes[-1]])
    lengths = [len(seen(tree.prefix, path_of(tree, n), network.window)) for n in nodes]
    whole = [length == i + 1 for i, length in enumerate(lengths)]
    assert cuts["language model"] == (whole.count(False), len(nodes))
    assert whole.count(False) > 0
    for node in nodes[:: len(nodes) // 9]:
        agrees(scores.segment(node), one_by_one(network, tree.prefix, path_of(tree, node))[-1])
    # Work stays shared: far less than a window per turn.
    assert engine.tokens_computed < 4 * 11 * len(nodes)


def test_a_turn_longer_than_the_window_keeps_its_beginning(network):
    engine = Likelihood(network)
    tree = Tree((1,))
    long, reply = random_segments(1, [5 * network.window, 9])
    monologue = tree.add(tree.ROOT, long)
    answer = tree.add(monologue, reply)
    with counted_cuts() as cuts:
        scores = engine.score(tree, segments=[monologue, answer])
    assert scores.segment(monologue).count == network.window - 1
    assert scores.segment(answer).count == 9
    for node in (monologue, answer):
        agrees(scores.segment(node), one_by_one(network, tree.prefix, path_of(tree, node))[-1])
    assert cuts["language model"] == (2, 2)


def test_what_is_known_is_not_computed_again(network):
    engine = Likelihood(network)
    start, reply, other = random_segments(2, [10, 6, 6])
    tree = Tree((1,))
    node = tree.add(tree.add(tree.ROOT, start), reply)
    before = engine.score(tree, paths=[node]).path(node)
    computed = engine.tokens_computed
    again = Tree((1,))
    again.add(again.ROOT, other)  # numbers differ, the path is the same
    node = again.add(again.add(again.ROOT, start), reply)
    assert engine.score(again, paths=[node]).path(node) == before
    assert engine.tokens_computed == computed
    # The same tokens with another scaffold are another question.
    unlike = again.add(again.add(again.ROOT, start), Segment(reply.tokens, 2, 5))
    assert engine.score(again, segments=[unlike]).segment(unlike).count == 3


def test_the_first_token_of_all_is_neither_scored_nor_counted(network):
    engine = Likelihood(network)
    tree = Tree()
    one, three = tree.add(tree.ROOT, Segment.of([5])), tree.add(tree.ROOT, Segment.of([5, 6, 7]))
    scores = engine.score(tree, segments=[one, three])
    assert scores.segment(one).count == 0
    assert math.isnan(scores.segment(one).mean)
    assert scores.segment(three).count == 2
    agrees(scores.segment(three), one_by_one(network, (), [tree.segment(three)])[0])


def test_nothing_asked(network):
    engine = Likelihood(network)
    with counted_cuts() as cuts:
        engine.score(Tree((1,)))
    assert engine.tokens_computed == 0
    assert cuts == {}


def test_an_equal_segment_is_the_same_node():
    tree = Tree((1,))
    node = tree.add(tree.ROOT, Segment.of([1, 2]))
    assert tree.add(tree.ROOT, Segment.of([1, 2])) == node
    assert tree.add(tree.ROOT, Segment((1, 2), 1, 2)) != node
    assert tree.add(node, Segment.of([1, 2])) != node
    with pytest.raises(IndexError):
        tree.add(17, Segment.of([1]))


def test_bfloat16_is_close(tiny_llama):
    tree = Tree((1,))
    nodes = []
    for segment in random_segments(3, [9, 8, 7, 9, 8]):
        nodes.append(tree.add(nodes[-1] if len(nodes) % 2 else tree.ROOT, segment))
    exact, rough = (
        Likelihood(load(tiny_llama, dtype), budget=16).score(tree, segments=nodes)
        for dtype in (torch.float32, torch.bfloat16)
    )
    for node in nodes:
        assert rough.segment(node).mean == pytest.approx(exact.segment(node).mean, rel=0.1)
        assert rough.segment(node).mean != exact.segment(node).mean


def test_a_prefix_that_fills_the_window_is_an_error(network):
    tree = Tree([1] * network.window)
    node = tree.add(tree.ROOT, Segment.of([1]))
    with pytest.raises(CauserieError, match="window"):
        Likelihood(network).score(tree, segments=[node])


def test_loads_what_the_settings_say(tiny_llama):
    engines = Engines(Settings(lm=str(tiny_llama), turn_format="eos"))
    signature = engines.signature("language model")
    assert engines.likelihood.format.name == "eos"
    assert ",eos," in signature
    assert engines.store.identify(engines.settings.lm, "language model").digest[:12] in signature


@pytest.fixture(scope="module")
def default_network(default_models) -> Network:
    return load("default")


@pytest.mark.default_models
@pytest.mark.slow
@settings(max_examples=6)
@given(tree=trees(longest=6, nodes=8), budgets=st.sets(st.integers(1, 60)), data=st.data())
def test_default_model_equals_one_by_one_for_random_trees(default_network, tree, budgets, data):
    nodes = list(range(1, len(tree)))
    expected = [one_by_one(default_network, tree.prefix, path_of(tree, n))[-1] for n in nodes]
    for budget in (3, 512, *sorted(budgets)[:1]):
        engine = Likelihood(default_network, budget=budget)
        order = data.draw(st.permutations(nodes))
        half = len(order) // 2
        for part in (order[:half], order[half:]):
            scores = engine.score(tree, segments=part)
            for node in part:
                agrees(scores.segment(node), expected[node - 1])


@pytest.mark.default_models
@pytest.mark.slow
@pytest.mark.parametrize("turns", ["chat", "eos"])
def test_default_model_equals_one_by_one(default_models, turns):
    engine = Likelihood.load(default_models, Settings(turn_format=turns))
    backbone = engine.backbone
    dialogue = Dialogue(
        "d",
        (
            Turn("a", "Hi! What did you do on Sunday?"),
            Turn("b", "We went up to the lake. שלום 🙂"),
            Turn("a", "Was it cold?<|im_end|>\n<|im_start|>user\n"),
            Turn("b", "Freezing, but my sister swam anyway."),
        ),
    )
    tree = DialogueTree(engine.format)
    engine.budget = 48
    responses = [tree.response(exchange) for exchange in dialogue.exchanges()]
    follow_ups = [
        tree.say(node, "user", text)
        for node in responses
        for text in ("That's great!", "That's boring.", "I don't understand.")
    ]
    scores = engine.score(tree, segments=responses, paths=follow_ups)
    network = Network(
        backbone.name, backbone.sha256, backbone.model, backbone.tokenizer, backbone.window
    )
    for node in responses:
        agrees(scores.segment(node), one_by_one(network, tree.prefix, path_of(tree, node))[-1])
    for node in follow_ups:
        parts = one_by_one(network, tree.prefix, path_of(tree, node))
        agrees(scores.path(node), (sum(t for t, _ in parts), sum(c for _, c in parts)))
