"""The graph on disk: every query returns what was written."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from causerie.errors import CauserieError
from causerie.graph import Graph, Hops, Neighbour, Surroundings, wordnet
from causerie.graph.about import Source
from causerie.graph.builder import Builder
from causerie.graph.edges import Edge
from causerie.graph.hops import NO_PATH
from causerie.graph.vectors import reduced
from causerie.text.keywords import Frequencies
from graph.making import built, distances, linked

words = st.sampled_from([*"abcdefghij", "ice cream", "été", "日本"])
pairs = st.lists(
    st.tuples(words, words).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=14
)


@settings(max_examples=60)
@given(pairs, st.integers(1, 6))
def test_hops_and_paths_equal_a_naive_search(links: list[tuple[str, str]], cap: int) -> None:
    with TemporaryDirectory() as folder:
        graph = linked(Path(folder) / "g", links)
        hops = Hops(graph, cap)
        nodes = range(len(graph))
        found = hops.between(nodes, nodes)
        linked_pairs = {frozenset(pair) for pair in links}
        for one in nodes:
            known = distances(links, graph.word(one))
            for other in nodes:
                expected = known.get(graph.word(other), NO_PATH)
                expected = expected if expected <= cap else NO_PATH
                assert found[one, other] == expected
                path = hops.path(one, other)
                if expected == NO_PATH:
                    assert path is None
                    continue
                assert path is not None
                assert (path[0], path[-1], len(path)) == (one, other, expected + 1)
                steps = [frozenset((graph.word(a), graph.word(b))) for a, b in pairwise(path)]
                assert linked_pairs.issuperset(steps)


@settings(max_examples=40)
@given(pairs, st.integers(0, 4))
def test_rings_hold_what_is_at_that_distance(links: list[tuple[str, str]], far: int) -> None:
    with TemporaryDirectory() as folder:
        graph = linked(Path(folder) / "g", links)
        for node in range(len(graph)):
            known = distances(links, graph.word(node))
            ring = Hops(graph).ring(node, far)
            assert [graph.word(n) for n in ring.tolist()] == sorted(
                (word for word, distance in known.items() if distance == far),
                key=str.encode,
            )


edges = st.lists(
    st.builds(
        Edge,
        words,
        st.sampled_from(["IsA", "PartOf"]),
        words,
        st.sampled_from([0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=25,
).filter(lambda found: any(edge.head != edge.tail for edge in found))


@settings(max_examples=60)
@given(edges, edges)
def test_every_edge_stands_at_both_ends_once(first: list[Edge], second: list[Edge]) -> None:
    builder = Builder()
    builder.add(Source("first", "a"), first)
    builder.add(Source("second", "b"), second)
    expected: dict[tuple[str, str, str, str], float] = {}
    for name, given_edges in (("first", first), ("second", second)):
        for head, relation, tail, weight in given_edges:
            if head != tail:
                key = (head, relation, tail, name)
                expected[key] = max(weight, expected.get(key, 0))
    names = sorted({word for key in expected for word in (key[0], key[2])}, key=str.encode)
    with TemporaryDirectory() as folder:
        assert builder.words == names
        about = builder.write(Path(folder) / "g")
        graph = Graph.open(Path(folder) / "g")
        assert graph.about == about
        assert (about.nodes, about.edges) == (len(names), len(expected))
        assert [source.edges for source in about.sources] == [
            sum(key[3] == name for key in expected) for name in ("first", "second")
        ]
        for node, name in enumerate(names):
            assert graph.find(name) == node
            assert graph.word(node) == name
            assert {
                (n.word, n.relation, n.backwards, n.weight, n.source)
                for n in graph.neighbours(node)
            } == {
                *((t, r, False, w, s) for (h, r, t, s), w in expected.items() if h == name),
                *((h, r, True, w, s) for (h, r, t, s), w in expected.items() if t == name),
            }
        # The files are what every reader of safetensors reads.
        arrays = load_file(Path(folder) / "g" / "graph.safetensors")
        assert all(np.array_equal(arrays[name], graph.arrays[name]) for name in arrays)


@given(st.text(max_size=5))
def test_words_that_are_not_there(word: str) -> None:
    if word not in ("a", "b c"):
        assert _SMALL.find(word) is None


_FOLDER = TemporaryDirectory()
_SMALL = linked(Path(_FOLDER.name) / "small", [("a", "b c")])


def test_neighbours_are_listed_strongest_first(tmp_path: Path) -> None:
    graph = built(
        tmp_path / "g",
        [Edge("dog", "IsA", "animal", 1.0), Edge("flea", "AtLocation", "dog", 2.0)],
    )
    assert graph.neighbours(graph.find("dog") or 0) == [
        Neighbour("flea", "AtLocation", True, 2.0, "test"),
        Neighbour("animal", "IsA", False, 1.0, "test"),
    ]


def test_vectors_are_the_given_ones_to_a_hundredth(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given_vectors = {
        word: rng.normal(size=16) * scale for word, scale in (("a", 1), ("b", 9), ("c", 0.1))
    }
    vectors = {word: vector.tolist() for word, vector in given_vectors.items()}
    graph = linked(tmp_path / "g", [("a", "b"), ("b", "c"), ("c", "d")], vectors | {"x": [0] * 16})
    assert (graph.dimension, graph.about.vectors) == (16, "by hand")
    for node, word in enumerate("abc"):
        step = np.abs(given_vectors[word]).max() / 127
        assert np.abs(graph.vectors([node])[0] - given_vectors[word]).max() <= step / 2 + 1e-6
    assert not graph.vectors([3]).any()
    assert load_file(tmp_path / "g" / "vectors.safetensors")["vectors"].dtype == np.int8


def test_vectors_of_different_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="'b' has 3 numbers, that of 'a' has 2"):
        linked(tmp_path / "g", [("a", "b")], {"a": [1, 2], "b": [1, 2, 3]})
    assert list(tmp_path.iterdir()) == []


def test_surroundings_worked_by_hand(tmp_path: Path) -> None:
    """Neighbours of `o` are a, b and c, d is two hops away; a is the most similar, then b."""
    vectors = {"o": [1, 0], "a": [2, 0], "b": [3, 3], "c": [0, 1], "d": [0, 5]}
    links = [("o", "a"), ("o", "b"), ("o", "c"), ("a", "d"), ("o", "e")]
    graph = linked(tmp_path / "g", links, {w: [float(x) for x in v] for w, v in vectors.items()})
    node = graph.find("o") or 0
    around = Surroundings(graph, nearest=2)
    assert [graph.word(n) for n in around.similar(node, 1).tolist()] == ["a", "b"]
    assert around.mean(node, 1) == pytest.approx([2.5, 1.5])
    assert around.mean(node, 2) == pytest.approx([0, 5])
    assert around.mean(node, 3).tolist() == [0, 0]
    assert Surroundings(graph).mean(node, 1) == pytest.approx([5 / 3, 4 / 3])  # e has no vector


def test_without_vectors_it_says_so(tmp_path: Path) -> None:
    graph = linked(tmp_path / "g", [("a", "b")])
    assert graph.dimension == 0
    with pytest.raises(CauserieError, match="has no vectors"):
        Surroundings(graph).mean(0, 1)
    with pytest.raises(CauserieError, match="not built from a corpus"):
        graph.frequencies  # noqa: B018


def test_frequencies_go_with_it(tmp_path: Path) -> None:
    builder = Builder()
    builder.add(Source("test", "a"), [Edge("a", "IsA", "b")])
    builder.write(tmp_path / "g", frequencies=Frequencies(9, {"a": 3, "z": 4}))
    assert Graph.open(tmp_path / "g").frequencies == Frequencies(9, {"a": 3})


def test_rings_that_are_kept_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = [(f"{i:02}", f"{i + 1:02}") for i in range(30)]
    graph = linked(tmp_path / "g", links)
    monkeypatch.setattr("causerie.graph.hops.REMEMBERED_NODES", 4)
    hops = Hops(graph, cap=40)
    assert hops.between([0], [30])[0, 0] == 30
    assert sum(map(len, hops._rings.values())) == hops._kept <= 4


def test_reduced_keeps_what_differs_most() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(200, 6)) * [5, 0.01, 3, 0.01, 0.01, 0.01] + 7
    small = reduced(vectors.astype(np.float32), 2)
    centred = vectors - vectors.mean(axis=0)
    assert small.shape == (200, 2)
    assert small @ small.T == pytest.approx(centred @ centred.T, abs=0.05)


def test_a_graph_is_replaced_but_nothing_else(tmp_path: Path) -> None:
    linked(tmp_path / "g", [("a", "b")], {"a": [1.0]})
    graph = linked(tmp_path / "g", [("a", "b"), ("b", "c")])
    assert (len(graph), graph.dimension) == (3, 0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(CauserieError, match="exists and is not a graph"):
        linked(tmp_path / "other", [("a", "b")])
    (tmp_path / "other" / "graph.json").write_text("{}")  # a name that others use too
    with pytest.raises(CauserieError, match="exists and is not a graph"):
        linked(tmp_path / "other", [("a", "b")])
    assert (tmp_path / "other" / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "other"]


def test_the_card_tells_where_it_comes_from(tmp_path: Path) -> None:
    builder = Builder()
    builder.add(Source("WordNet 3.1", wordnet.LICENCE, ("f" * 64,)), [Edge("a", "IsA", "b")])
    builder.add(Source("talk", "CC0-1.0"), [Edge("a", "AnsweredWith", "c")] * 2)
    builder.write(tmp_path / "g", recipe="causerie graph build --wordnet --out g")
    card = (tmp_path / "g" / "card.md").read_text()
    assert "# g\n\nA graph of 3 words and 2 relations" in card
    assert f"| WordNet 3.1 | 1 | WordNet | {'f' * 12} |" in card
    assert "causerie graph build --wordnet --out g" in card
    assert "| AnsweredWith | 1 |" in card
    licence = (tmp_path / "g" / "LICENSE").read_text()
    assert "- talk: CC0-1.0" in licence
    assert "WordNet 3.1 Copyright 2011 by Princeton University" in licence


def test_no_edges_no_graph(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="no edges were found"):
        linked(tmp_path / "g", [("a", "a")])


def test_too_many_relations(tmp_path: Path) -> None:
    built(tmp_path / "g", [Edge("a", f"r{i}", "b") for i in range(128)])
    with pytest.raises(CauserieError, match="at most 128 relations"):
        built(tmp_path / "h", [Edge("a", f"r{i}", "b") for i in range(129)])


@pytest.mark.parametrize("damage", ["no about", "format", "cut", "header", "other", "vectors"])
def test_damaged_graphs_are_said(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "g"
    linked(folder, [("a", "b"), ("b", "c")], {"a": [1.0, 2.0]})
    linked(tmp_path / "other", [("a", "b")], {"a": [1.0, 2.0]})
    if damage == "no about":
        (folder / "graph.json").unlink()
    elif damage == "format":
        about = json.loads((folder / "graph.json").read_text())
        (folder / "graph.json").write_text(json.dumps(about | {"format": 99}))
    elif damage == "cut":
        content = (folder / "graph.safetensors").read_bytes()
        (folder / "graph.safetensors").write_bytes(content[:-20])
    elif damage == "header":
        (folder / "graph.safetensors").write_bytes(b"\xff" * 40)
    else:
        file = "graph.safetensors" if damage == "other" else "vectors.safetensors"
        (tmp_path / "other" / file).replace(folder / file)
    with pytest.raises(CauserieError, match=r"not a graph|damaged"):
        Graph.open(folder)


@settings(max_examples=200)
@given(data=st.data())
def test_what_opens_can_be_used(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "g"
    linked(folder, [("a", "b"), ("b", "c"), ("c", "d")], {"a": [1.0, 2.0]})
    file = folder / "graph.safetensors"
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content))
    try:
        graph = Graph.open(folder)
    except CauserieError:
        return
    for node in range(len(graph)):
        graph.adjacent(np.array([node], dtype=np.int32))
        assert all(0 <= t < len(graph) for t in graph.adjacent(np.array([node], dtype=np.int32)))


@pytest.mark.parametrize("part", ["graph.json", "graph.safetensors", "vectors.safetensors"])
def test_no_byte_of_a_graph_can_change(tmp_path: Path, part: str) -> None:
    graph = linked(tmp_path / "g", [("a", "b"), ("b", "c")], {"a": [1.0, 2.0]})
    file = tmp_path / "g" / part
    content = file.read_bytes()
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 1
        other = tmp_path / "other"
        other.write_bytes(changed)
        other.replace(file)  # another file, for the open graph is mapped
        with pytest.raises(CauserieError, match=f"{part} does not match SHA256SUMS"):
            Graph.open(tmp_path / "g")
    file.unlink()
    with pytest.raises(CauserieError, match=r"is not a graph|damaged"):
        Graph.open(tmp_path / "g")
    node = graph.find("b")
    assert node is not None
    assert [one.word for one in graph.neighbours(node)] == ["a", "c"]  # what was opened stays


@pytest.mark.parametrize("listing", [None, "", "x\n", "0" * 64 + "  ../graph.json\n"])
def test_a_graph_without_its_digests(tmp_path: Path, listing: str | None) -> None:
    linked(tmp_path / "g", [("a", "b")])
    (tmp_path / "g" / "SHA256SUMS").unlink()
    if listing is not None:
        (tmp_path / "g" / "SHA256SUMS").write_text(listing)
    with pytest.raises(CauserieError, match=r"damaged.*SHA256SUMS.*causerie graph build"):
        Graph.open(tmp_path / "g")


@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_of_a_graph_are_finite(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="not every number in scales is finite"):
        linked(tmp_path / "g", [("a", "b")], {"a": [1.0, float("nan")]})


def test_a_cap_that_a_byte_cannot_hold(tmp_path: Path) -> None:
    graph = linked(tmp_path / "g", [("a", "b")])
    assert Hops(graph, 127).between([0], [1]).tolist() == [[1]]
    with pytest.raises(CauserieError, match="up to 127, not to 128"):
        Hops(graph, 128)


def test_reduced_vectors_are_the_principal_components_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(40_000, 6)) * [5, 4, 3, 1, 1, 1] + 2).astype(np.float32)
    small = reduced(vectors, 3)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(small), np.abs(centred @ directions[:3].T), atol=1e-2)


def test_symmetric_relations_have_no_direction(tmp_path: Path) -> None:
    graph = built(
        tmp_path / "g",
        [
            Edge("big", "Synonym", "large", 1.0),
            Edge("large", "Synonym", "big", 2.0),
            Edge("dog", "IsA", "animal"),
            Edge("animal", "IsA", "dog"),
        ],
    )
    assert graph.about.edges == 3
    for word, other in (("big", "large"), ("large", "big")):
        node = graph.find(word)
        assert node is not None
        (seen,) = graph.neighbours(node)
        assert (seen.word, seen.backwards, seen.weight) == (other, False, 2.0)


def test_a_name_that_is_none() -> None:
    with pytest.raises(CauserieError, match="nowhere is not a graph: give 'everyday' or a folder"):
        Graph.open("nowhere")
