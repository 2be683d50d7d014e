"""`causerie graph`: building graphs from files and asking about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from causerie.cli.graph import graph_app
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.graph import Graph
from causerie.models import Store
from causerie.progress import Progress
from causerie.training.graph import GraphPlan, build_graph
from graph.test_sources import ASSERTIONS, SYNSETS, written
from models.shelf import digest

TRIPLES = [
    {"rel": "IsA", "head": "dog", "tail": "animal", "weight": 2.0},
    {"rel": "AtLocation", "head": "flea", "tail": "dog"},
    {"rel": "IsA", "head": "moon", "tail": "rock"},
]


def run(*arguments: object, status: int = 0) -> str:
    """Return the output of `causerie graph ...`, or raise its `CauserieError`."""
    result = CliRunner().invoke(graph_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, CauserieError):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.stdout


@pytest.fixture
def triples(tmp_path: Path) -> Path:
    return written(tmp_path, "\n".join(map(json.dumps, TRIPLES)), "t.jsonl")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus in which bones answer dogs; the rest is small talk."""
    talk = [["My dog barks.", "Give it a bone."]] * 12 + [["The sun shines.", "So it does."]] * 40
    rows = [{"turns": [{"speaker": "A", "text": text} for text in turns]} for turns in talk]
    return written(tmp_path, "\n".join(map(json.dumps, rows)), "talk.jsonl")


def test_triples(tmp_path: Path, triples: Path) -> None:
    folder = tmp_path / "g"
    run("build", "--triples", triples, "--dimension", 0, "--licence", "CC0-1.0", "--out", folder)
    told = run("info", folder)
    assert "5 words, 3 relations" in told
    assert "source: t.jsonl (3 relations; CC0-1.0)" in told
    assert "vectors: none" in told
    assert run("neighbours", "dog", "-g", folder) == (
        "  2.00  -IsA-> animal  (t.jsonl)\n  1.00  <-AtLocation- flea  (t.jsonl)\n"
    )
    assert "and 1 more of t.jsonl" in run("neighbours", "Dog", "-g", folder, "--count", 1)
    assert run("path", "flea", "animal", "-g", folder) == (
        "flea -AtLocation-> dog\ndog -IsA-> animal\n2 steps\n"
    )
    assert run("path", "dog", "dog", "-g", folder) == "0 steps\n"
    assert run("path", "dog", "moon", "-g", folder, status=1) == "no path of at most 5 steps\n"
    assert "at most 1 steps" in run("path", "flea", "animal", "--cap", 1, "-g", folder, status=1)
    with pytest.raises(CauserieError, match=r"'mice' is not in the graph: its words are lemmas"):
        run("neighbours", "mice", "-g", folder)


def test_assertions_with_numberbatch(tmp_path: Path) -> None:
    dump = written(tmp_path, ASSERTIONS, "assertions.csv.gz")
    vectors = written(tmp_path, "2 2\ndog 0.5 -1\nice_cream 1 0\n", "numberbatch.txt.gz")
    folder = tmp_path / "g"
    run("build", "--conceptnet", dump, "--numberbatch", vectors, "--out", folder)
    graph = Graph.open(folder)
    assert len(graph) == 6
    assert graph.vectors([graph.find("dog") or 0])[0] == pytest.approx([0.5, -1], abs=0.01)
    assert not graph.vectors([graph.find("pop") or 0]).any()
    assert "Numberbatch (numberbatch.txt.gz), CC BY-SA 4.0" in (folder / "card.md").read_text()
    run("build", "--conceptnet", dump, "--relation", "IsA", "--dimension", 0, "--out", folder)
    assert [Graph.open(folder).word(n) for n in (0, 1)] == ["canine", "dog"]


def test_sources_are_merged_and_restricted_to_spoken_words(
    tmp_path: Path, corpus: Path, tiny_bert: Path
) -> None:
    """The default sources: WordNet and a corpus, with vectors from an encoder."""
    entry = {
        "name": "wordnet-3.1",
        "aliases": [],
        "kind": "dictionary",
        "summary": "",
        "licence": "WordNet",
        "files": {"w.xml": digest(SYNSETS.encode())},
        "size": len(SYNSETS.encode()),
        "sources": [],
    }
    registry = written(tmp_path, json.dumps({"models": [entry]}), "registry.json")
    engines = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    engines.store = Store(tmp_path / "store", offline=True, registry=registry)
    engines.store.pull("wordnet-3.1", written(tmp_path, SYNSETS, "w.xml"))
    told: list[Progress] = []
    plan = GraphPlan(tmp_path / "g", wordnet=True, corpus=(corpus,), dimension=4)
    about = build_graph(plan, engines, told.append)
    graph = Graph.open(tmp_path / "g")
    edges = {(n.word, n.relation) for n in graph.neighbours(graph.find("dog") or 0)}
    assert {("bone", "AnsweredWith"), ("canine", "IsA"), ("pack", "PartOf")} <= edges
    assert [source.name for source in about.sources] == [
        "WordNet 3.1",
        "neighbouring turns of talk.jsonl",
    ]
    assert graph.dimension == 4
    assert graph.vectors([0]).any()
    assert graph.frequencies.utterances == 104
    assert graph.frequencies.counts["dog"] == 12
    tasks = {one.task for one in told}
    assert {"counting words", "reading WordNet", "finding answers", "encoding words"} <= tasks
    assert "Princeton University" in (tmp_path / "g" / "LICENSE").read_text()

    build_graph(
        GraphPlan(tmp_path / "h", wordnet=True, corpus=(corpus,), dimension=0, spoken=2), engines
    )
    small = Graph.open(tmp_path / "h")
    assert {small.word(node) for node in range(len(small))} <= set(graph.frequencies.counts)
    assert small.find("canine") is None


def test_what_cannot_be_fetched_is_said_before_anything_is_read(
    tmp_path: Path, corpus: Path
) -> None:
    engines = Engines(Settings(models_dir=tmp_path / "empty", offline=True))
    told: list[Progress] = []
    for plan in (
        GraphPlan(tmp_path / "g", wordnet=True, corpus=(corpus,), dimension=0),
        GraphPlan(tmp_path / "g", corpus=(corpus,), dimension=4),
    ):
        with pytest.raises(CauserieError, match="offline"):
            build_graph(plan, engines, told.append)
    assert told == []


def test_vectors_of_usage_need_no_encoder(tmp_path: Path, corpus: Path) -> None:
    engines = Engines(Settings(encoder=str(tmp_path / "none"), offline=True))
    build_graph(GraphPlan(tmp_path / "g", corpus=(corpus,), vectors="usage", dimension=1), engines)
    graph = Graph.open(tmp_path / "g")
    assert graph.dimension == 1
    assert graph.about.vectors == "which words stand together in talk.jsonl, 1 singular vectors"
    assert graph.vectors([graph.find("dog") or 0]).any()


def test_bad_dialogues_are_reported_once(tmp_path: Path, corpus: Path) -> None:
    corpus.write_text(corpus.read_text() + "\n{broken\n")
    told: list[Progress] = []
    plan = GraphPlan(tmp_path / "g", corpus=(corpus,), dimension=0)
    build_graph(plan, Engines(Settings()), told.append)
    (note,) = (one.note for one in told if one.note)
    assert note.startswith(f"skipped {corpus}:53: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is no source: give --conceptnet"),
        (("--wordnet", "--spoken", 3), "--spoken counts utterances of a corpus"),
        (("--wordnet", "--vectors", "usage"), "--vectors usage needs a corpus"),
        (("--wordnet", "--vectors", "glove"), "--vectors must be encoder or usage, not glove"),
        (("--triples", "nowhere.jsonl"), r"nowhere\.jsonl does not exist"),
        (("--numberbatch", "nowhere.txt", "--wordnet"), r"nowhere\.txt does not exist"),
    ],
)
def test_what_cannot_be_built(tmp_path: Path, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(CauserieError, match=message):
        run("build", *arguments, "--out", tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_leaves_nothing_behind(tmp_path: Path, triples: Path) -> None:
    triples.write_text(triples.read_text() + "\n{}\n")
    with pytest.raises(CauserieError, match=r"t\.jsonl:4: head is missing"):
        run("build", "--triples", triples, "--dimension", 0, "--out", tmp_path / "g")
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_place_that_is_taken_is_said_before_the_work(tmp_path: Path, triples: Path) -> None:
    with pytest.raises(CauserieError, match="exists and is not a graph"):
        run("build", "--triples", triples, "--out", tmp_path)


@pytest.mark.parametrize("command", ["build", "info", "path", "neighbours"])
def test_help_has_examples(command: str) -> None:
    assert "Example" in run(command, "--help")
