"""The topic graph of an exchange, on a commonsense graph made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.metrics.grade.topics import TopicGraph, Topics

sys.path.insert(0, str(Path(__file__).parent))
from small_graph import exchange_of, small_graph


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Topics:
    return Topics(small_graph(tmp_path_factory.mktemp("graph") / "small"), cap=5)


def graph_of(topics: Topics, *texts: str, history: int = 2) -> TopicGraph:
    (graph,) = topics.graphs([exchange_of(*texts)], history)
    return graph


def words(topics: Topics, nodes: tuple[int, ...]) -> list[str]:
    return [topics.graph.word(node) for node in nodes]


def test_an_exchange_as_in_figure_1(topics: Topics) -> None:
    graph = graph_of(topics, "I have a dog.", "The moon!", "We walk the dog and a cat.")
    assert words(topics, graph.context) == ["dog", "moon"]
    assert set(words(topics, graph.response)) == {"dog", "cat", "walk"}
    hops = {
        (words(topics, graph.context)[i], words(topics, graph.response)[j]): int(graph.hops[i, j])
        for i in range(2)
        for j in range(3)
    }
    assert hops == {
        ("dog", "dog"): 0, ("dog", "walk"): 2, ("dog", "cat"): 2,
        ("moon", "dog"): -1, ("moon", "walk"): -1, ("moon", "cat"): -1,
    }  # fmt: skip
    weights = {0: 1.0, 1: 1 / 2, 2: 1 / 3, 3: 1 / 4, -1: 1 / 20}
    expected = [[weights[int(h)] for h in row] for row in graph.hops]
    np.testing.assert_allclose(graph.weights, expected, rtol=1e-6)


def test_edges_are_between_the_sides_only(topics: Topics) -> None:
    graph = graph_of(topics, "The dog and the star.", "A pet, a cat.")
    names = words(topics, graph.nodes)
    assert len(names) == 4
    naive = np.zeros((4, 4))
    for i in range(2):
        for j in range(2):
            h = int(topics.hops.between([graph.context[i]], [graph.response[j]])[0, 0])
            naive[i, 2 + j] = naive[2 + j, i] = 1 / 20 if h < 0 else 1 / (h + 1)
    np.testing.assert_allclose(graph.adjacency(), naive, rtol=1e-6)
    assert (graph.adjacency()[names.index("dog"), names.index("pet")]) == pytest.approx(1 / 2)
    np.testing.assert_array_equal(graph.adjacency(weighted=False), naive > 0)


def test_one_side_or_none_has_topics(topics: Topics) -> None:
    one = graph_of(topics, "I have a dog.", "Oh.")
    assert (len(one.context), one.response, one.hops.shape) == (1, (), (1, 0))
    assert one.adjacency().tolist() == [[0.0]]
    other = graph_of(topics, "Oh.", "I have a dog.")
    assert (other.context, len(other.response)) == ((), 1)
    nothing = graph_of(topics, "Oh.", "Hm.")
    assert nothing.nodes == ()
    assert nothing.adjacency().shape == (0, 0)


def test_words_that_the_graph_does_not_have_are_left_out(topics: Topics) -> None:
    assert graph_of(topics, "Zebras and giraffes!", "The dog.").context == ()
    for text in ("12 + 30 = 42", "🙂🙂", "éàü 日本語", "..."):
        assert topics.of(text) == ()


def test_history_is_how_much_of_the_context_counts(topics: Topics) -> None:
    texts = ("The star.", "The dog.", "The cat.", "The moon.")
    assert words(topics, graph_of(topics, *texts).context) == ["dog", "cat"]
    assert words(topics, graph_of(topics, *texts, history=1).context) == ["cat"]
    assert words(topics, graph_of(topics, *texts, history=9).context) == ["star", "dog", "cat"]


def test_a_word_that_is_said_twice_is_one_topic(topics: Topics) -> None:
    graph = graph_of(topics, "The dog.", "My dog.", "Your dog, the dog.")
    assert words(topics, graph.nodes) == ["dog", "dog"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["dog", "cat", "zoo", "moon", "walk", "hm"]), max_size=4))
def test_context_and_response_change_places(topics: Topics, said: list[str]) -> None:
    one, other = " ".join(["oh", *said[:2]]), " ".join(["ah", *said[2:]])
    there, back = graph_of(topics, one, other), graph_of(topics, other, one)
    assert (there.context, there.response) == (back.response, back.context)
    np.testing.assert_array_equal(there.hops, back.hops.T)
