"""The graph that ships with causerie."""

from __future__ import annotations

from pathlib import Path

import pytest

from causerie.graph import Graph, Hops, Surroundings
from causerie.text.keywords import KeywordExtractor


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.open()


def hops(graph: Graph, one: str, other: str) -> int:
    nodes = [graph.find(one), graph.find(other)]
    assert None not in nodes
    return int(Hops(graph).between([nodes[0] or 0], [nodes[1] or 0])[0, 0])


def test_it_is_small_and_has_its_papers(graph: Graph) -> None:
    assert sum(file.stat().st_size for file in graph.folder.iterdir()) < 6e6
    assert "WordNet 3.1 Copyright 2011" in (graph.folder / "LICENSE").read_text()
    card = (graph.folder / "card.md").read_text()
    assert "causerie graph build --wordnet" in card
    assert {source.licence for source in graph.about.sources} == {
        "WordNet",
        "chitchat: MIT; selfdialogue: BSD-3-Clause",
    }
    assert "encoder" not in graph.about.vectors
    assert str(Path.home()) not in card


def test_what_belongs_together_is_near(graph: Graph) -> None:
    assert hops(graph, "dog", "animal") <= 2
    assert hops(graph, "doctor", "hospital") <= 2
    near = [("dog", "cat"), ("doctor", "nurse"), ("train", "ticket"), ("exam", "study")]
    far = [("dog", "ticket"), ("doctor", "guitar"), ("train", "wedding"), ("exam", "soup")]
    assert sum(hops(graph, *pair) for pair in near) < sum(hops(graph, *pair) for pair in far)


def test_every_word_has_a_vector_and_similar_words_around_it(graph: Graph) -> None:
    assert graph.dimension == 64
    assert (graph.arrays["scales"] > 0).all()
    around = Surroundings(graph)
    node = graph.find("dog") or 0
    words = {graph.word(int(n)) for d in (1, 2) for n in around.similar(node, d)}
    assert len(words) == 20
    assert words & {"cat", "puppy", "pet", "animal"}
    assert around.mean(node, 1).shape == (64,)


def test_it_knows_which_words_are_common(graph: Graph) -> None:
    extractor = KeywordExtractor(graph.frequencies)
    (found,) = extractor.extract(["I think my dog likes the beach"])
    words = [keyword.word for keyword in found]
    assert {"dog", "beach"} <= set(words)
    assert "be" not in words
    assert all(graph.find(word) is not None for word in ("dog", "beach"))
