"""Sources of graphs: files exactly as their publishers write them."""

from __future__ import annotations

import gzip
import json
import math
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.graph.conceptnet import read_assertions, read_numberbatch
from causerie.graph.cooccurrence import cooccurrence
from causerie.graph.edges import Edge, within
from causerie.graph.triples import read_triples
from causerie.graph.wordnet import notice, read_wordnet
from causerie.progress import Progress

ASSERTIONS = """\
/a/[/r/Antonym/,/c/ab/агыруа/n/,/c/ab/аҧсуа/]\t/r/Antonym\t/c/ab/агыруа/n\t/c/ab/аҧсуа\t{"dataset": "/d/wiktionary/en", "license": "cc:by-sa/4.0", "sources": [{"contributor": "/s/resource/wiktionary/en", "process": "/s/process/wikiparsec/2"}], "weight": 1.0}
/a/[/r/AtLocation/,/c/en/ice_cream/n/,/c/en/freezer/]\t/r/AtLocation\t/c/en/ice_cream/n\t/c/en/freezer\t{"dataset": "/d/conceptnet/4/en", "license": "cc:by/4.0", "sources": [{"contributor": "/s/contributor/omcs/dev"}], "surfaceText": "You are likely to find [[ice cream]] in [[a freezer]]", "weight": 2.828}
/a/[/r/IsA/,/c/en/dog/n/wn/animal/,/c/en/canine/n/wn/animal/]\t/r/IsA\t/c/en/dog/n/wn/animal\t/c/en/canine/n/wn/animal\t{"dataset": "/d/wordnet/3.1", "license": "cc:by/4.0", "sources": [{"contributor": "/s/resource/wordnet/rdf/3.1"}], "weight": 2.0}
/a/[/r/Synonym/,/c/en/dog/n/,/c/fr/chien/n/]\t/r/Synonym\t/c/en/dog/n\t/c/fr/chien/n\t{"dataset": "/d/wiktionary/fr", "license": "cc:by-sa/4.0", "sources": [], "weight": 1.0}
/a/[/r/ExternalURL/,/c/en/dog/,/http://dbpedia.org/resource/Dog/]\t/r/ExternalURL\t/c/en/dog\thttp://dbpedia.org/resource/Dog\t{"dataset": "/d/dbpedia/en", "license": "cc:by-sa/4.0", "sources": [], "weight": 1.0}
/a/[/r/dbpedia/genre/,/c/en/aba/n/wp/dj/,/c/en/pop/]\t/r/dbpedia/genre\t/c/en/aba/n/wp/dj\t/c/en/pop\t{"dataset": "/d/dbpedia/en", "license": "cc:by-sa/4.0", "sources": [], "weight": 0.5}
"""  # noqa: E501

SYNSETS = """\
<SYNSETS>
<SYNSET><ID>ENG31-02086723-n</ID><SYNONYM><LITERAL>dog<SENSE>0</SENSE></LITERAL><LITERAL>domestic dog<SENSE>0</SENSE></LITERAL></SYNONYM><POS>n</POS><DEF>a mammal that has been domesticated by man; it barks</DEF><SR>ENG31-02085998-n<TYPE>HYPERNYM</TYPE></SR><SR>ENG31-07692347-n<TYPE>MEMBER_HOLONYM</TYPE></SR><SR>ENG31-99999999-n<TYPE>HYPERNYM</TYPE></SR></SYNSET>
<SYNSET><ID>ENG31-02085998-n</ID><SYNONYM><LITERAL>canine<SENSE>0</SENSE></LITERAL><LITERAL>Canid<SENSE>0</SENSE></LITERAL></SYNONYM><POS>n</POS><DEF>furry mammals</DEF><SR>ENG31-02086723-n<TYPE>HYPONYM</TYPE></SR></SYNSET>
<SYNSET><ID>ENG31-07692347-n</ID><SYNONYM><LITERAL>pack<SENSE>0</SENSE></LITERAL></SYNONYM><POS>n</POS><DEF>a group</DEF><SR>ENG31-02086723-n<TYPE>MEMBER_MERONYM</TYPE></SR></SYNSET>
<SYNSET><ID>ENG31-00001740-a</ID><SYNONYM><LITERAL>able<SENSE>0</SENSE><SR>ENG31-05624029-n<TYPE>DERIVATION_RELATED</TYPE><TO>2</TO></SR><SR>ENG31-00002098-a<TYPE>ANTONYM</TYPE><TO>1</TO></SR></LITERAL></SYNONYM><POS>a</POS></SYNSET>
<SYNSET><ID>ENG31-00002098-a</ID><SYNONYM><LITERAL>unable<SENSE>0</SENSE><SR>ENG31-00001740-a<TYPE>ANTONYM</TYPE><TO>1</TO></SR></LITERAL></SYNONYM><POS>a</POS></SYNSET>
<SYNSET><ID>ENG31-05624029-n</ID><SYNONYM><LITERAL>power<SENSE>0</SENSE></LITERAL><LITERAL>ability<SENSE>0</SENSE></LITERAL></SYNONYM><POS>n</POS></SYNSET>
</SYNSETS>
"""  # noqa: E501


def written(folder: Path, content: str, name: str = "file") -> Path:
    path = folder / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["assertions.csv", "assertions.csv.gz"])
def test_assertions_of_one_language(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, ASSERTIONS, name)
    told: list[Progress] = []
    assert list(read_assertions(path, watch=told.append)) == [
        Edge("ice cream", "AtLocation", "freezer", 2.828),
        Edge("dog", "IsA", "canine", 2.0),
        Edge("aba", "dbpedia/genre", "pop", 0.5),
    ]
    size = path.stat().st_size
    assert told[-1] == Progress(f"reading {name}", size, size, "bytes")
    assert list(read_assertions(path, relations={"IsA"})) == [Edge("dog", "IsA", "canine", 2.0)]
    assert [e.head for e in read_assertions(path, language="ab")] == ["агыруа"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/a/x\t/r/IsA\t/c/en/dog", r"has 3 columns, not 5"),
        ("a\tb\t/c/en/a\t/c/en/b\t{}", r"its second column is not a relation"),
        ("/a/x\t/r/IsA\t/c/en/a\t/c/en/b\t{}", r"not JSON with a weight \(KeyError\('weight'\)\)"),
        ('/a/x\t/r/IsA\t/c/en/a\t/c/en/b\t{"weight": NaN}', r"the weight is not finite"),
        ("/a/x\t/r/IsA\t/c/en/a\t/c/en/b\t[1]", r"not JSON with a weight"),
        ("/a/x\t/r/IsA\t/c/en/a\t/c/en/b\t{", r"not JSON with a weight"),
    ],
)
def test_bad_assertions_name_file_line_and_cause(tmp_path: Path, line: str, reason: str) -> None:
    path = written(tmp_path, f"{ASSERTIONS}{line}\n", "dump.csv")
    with pytest.raises(CauserieError, match=rf"dump\.csv:7: .*{reason}.*give ConceptNet's dump"):
        list(read_assertions(path))


def test_assertions_cut_off_or_not_utf8(tmp_path: Path) -> None:
    path = written(tmp_path, ASSERTIONS * 50, "dump.csv.gz")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CauserieError, match=r"dump\.csv\.gz:\d+: cannot be read"):
        list(read_assertions(path))
    path = tmp_path / "latin.csv"
    path.write_bytes(b'/a/x\t/r/IsA\t/c/en/\xe9\t/c/en/b\t{"weight": 1.0}\n')
    with pytest.raises(CauserieError, match=r"latin\.csv:1: is not UTF-8"):
        list(read_assertions(path))
    with pytest.raises(CauserieError, match="does not exist"):
        list(read_assertions(tmp_path / "nowhere.csv"))


@pytest.mark.parametrize(
    "content",
    [
        "3 2\ndog 0.5 -1\nice_cream 1 0\n#### 1 1\n",
        "3 2\n/c/fr/dog 9 9\n/c/en/dog 0.5 -1\n/c/en/ice_cream 1 0\n",
        "dog 0.5 -1\nice_cream 1 0\n",
    ],
)
def test_numberbatch(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content, "numberbatch.txt.gz")
    found = dict(read_numberbatch(path, {"dog", "ice cream"}))
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "dog": [0.5, -1.0],
        "ice cream": [1.0, 0.0],
    }
    assert all(vector.dtype == np.float32 for vector in found.values())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("dog 1 x", "is not a word and its numbers"),
        ("dog 1", "has 1 numbers, not 2"),
        ("dog", "has 0 numbers, not 2"),
        ("dog 1 nan", "has a number that is not finite"),
    ],
)
def test_bad_numberbatch(tmp_path: Path, line: str, reason: str) -> None:
    path = written(tmp_path, f"2 2\ncat 1 2\n{line}\n", "n.txt")
    with pytest.raises(CauserieError, match=rf"n\.txt:3: {reason}.*give Numberbatch"):
        list(read_numberbatch(path, {"cat", "dog"}))


def test_triples(tmp_path: Path) -> None:
    rows = [
        {"rel": "IsA", "head": "dog", "tail": "Animal", "weight": 2.5, "sources": ["x"]},
        {"rel": "AtLocation", "head": "ice cream", "tail": "freezer"},
        {"rel": "IsA", "head": "dog", "tail": "pet", "weight": None},
    ]
    path = written(tmp_path, "\n\n".join(map(json.dumps, rows)), "t.jsonl.gz")
    assert list(read_triples(path)) == [
        Edge("dog", "IsA", "animal", 2.5),
        Edge("ice cream", "AtLocation", "freezer", 1.0),
        Edge("dog", "IsA", "pet", 1.0),
    ]
    assert [edge.tail for edge in read_triples(path, {"AtLocation"})] == ["freezer"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"rel": "IsA", "head": "dog"}', "tail is missing"),
        ('{"rel": "IsA", "head": " ", "tail": "b"}', "head is empty"),
        ('{"rel": 3, "head": "a", "tail": "b"}', "rel must be a string"),
        ('{"rel": "r", "head": "a", "tail": "b", "weight": "1"}', "weight must be a finite"),
        ('{"rel": "r", "head": "a", "tail": "b", "weight": Infinity}', "weight must be a finite"),
        (f'{{"rel": "r", "head": "a", "tail": "b", "weight": 1{"0" * 400}}}', "weight must be"),
    ],
)
def test_bad_triples(tmp_path: Path, line: str, reason: str) -> None:
    good = json.dumps({"rel": "IsA", "head": "a", "tail": "b"})
    path = written(tmp_path, f"{good}\n{line}\n", "t.jsonl")
    with pytest.raises(CauserieError, match=rf"t\.jsonl:2: .*{reason}.*on every line"):
        list(read_triples(path))


def test_wordnet(tmp_path: Path) -> None:
    found = set(read_wordnet(written(tmp_path, SYNSETS, "w.xml")))
    dogs, canines = ("dog", "domestic dog"), ("canine", "canid")
    assert {edge for edge in found if edge.relation != "DefinedWith"} == {
        Edge("dog", "Synonym", "domestic dog"),
        Edge("canine", "Synonym", "canid"),
        Edge("power", "Synonym", "ability"),
        *(Edge(dog, "IsA", canine) for dog, canine in product(dogs, canines)),
        *(Edge(dog, "PartOf", "pack") for dog in dogs),
        Edge("able", "DerivedFrom", "ability"),
        Edge("able", "Antonym", "unable"),
        Edge("unable", "Antonym", "able"),
    }
    defined = {(edge.head, edge.tail) for edge in found if edge.relation == "DefinedWith"}
    assert ("pack", "group") in defined
    assert ("canid", "mammal") in defined
    assert not any(tail in ("a", "that", "it") for _, tail in defined)


def test_wordnet_of_some_words(tmp_path: Path) -> None:
    path = written(tmp_path, SYNSETS, "w.xml")
    words = {"dog", "canine", "group", "pack"}
    assert set(read_wordnet(path, words)) == set(within(read_wordnet(path, words), words))
    assert {(e.head, e.relation, e.tail) for e in read_wordnet(path, words)} >= {
        ("dog", "IsA", "canine"),
        ("dog", "PartOf", "pack"),
        ("pack", "DefinedWith", "group"),
    }


@pytest.mark.parametrize("content", ["<SYNSETS><SYNSET>", "text", "<SYNSETS><SYNSET/></SYNSETS>"])
def test_what_is_no_wordnet(tmp_path: Path, content: str) -> None:
    with pytest.raises(CauserieError, match=r"w\.xml is not WordNet's XML"):
        list(read_wordnet(written(tmp_path, content, "w.xml")))
    with pytest.raises(CauserieError, match=r"w\.xml has no synsets"):
        list(read_wordnet(written(tmp_path, "<SYNSETS/>", "w.xml")))
    with pytest.raises(CauserieError, match="cannot be read"):
        list(read_wordnet(tmp_path / "nowhere.xml"))


def test_the_notice_of_wordnet_is_there() -> None:
    assert "WordNet 3.1 Copyright 2011 by Princeton University" in notice()


def chance(count: int, expected: float) -> float:
    """Return P(Poisson(expected) >= count): one minus the probability of fewer, term by term."""
    term, below = math.exp(-expected), 0.0
    for k in range(count):
        below += term
        term *= expected / (k + 1)
    return max(0.0, 1 - below)


def naive(dialogues: list[list[set[str]]], rate: float) -> dict[frozenset[str], float]:
    places = [
        (here, beside)
        for dialogue in dialogues
        for left, right in pairwise(dialogue)
        for here, beside in ((left, right), (right, left))
    ]
    words = sorted({word for dialogue in dialogues for turn in dialogue for word in turn})
    tested = []
    for i, a in enumerate(words):
        for b in words[i + 1 :]:
            both = sum(a in here and b in beside for here, beside in places)
            if both:
                expected = (
                    sum(a in here for here, _ in places)
                    * sum(b in here for here, _ in places)
                    / len(places)
                )
                pmi = math.log(both / expected)
                npmi = pmi / -math.log(min(both / len(places), 1 - 1e-12))
                evidence = sum(
                    any((a in x and b in y) or (b in x and a in y) for x, y in pairwise(dialogue))
                    for dialogue in dialogues
                )
                tested.append((chance(evidence, expected), frozenset((a, b)), npmi))
    tested.sort(key=lambda one: one[0])
    tests = len(words) * (len(words) - 1) / 2
    limit = -1.0
    for place, (p, _, _) in enumerate(tested, start=1):
        if p <= rate * place / tests:
            limit = p
    return {pair: npmi for p, pair, npmi in tested if p <= limit and npmi > 0}


turns = st.sets(st.sampled_from("abcdef"), max_size=3)


@given(st.lists(st.lists(turns, max_size=5), max_size=8), st.sampled_from([0.297, 0.983]))
def test_cooccurrence_equals_the_formulas(dialogues: list[list[set[str]]], rate: float) -> None:
    found = {frozenset((e.head, e.tail)): e.weight for e in cooccurrence(dialogues, rate)}
    expected = naive(dialogues, rate)
    assert found.keys() == expected.keys()
    for pair in found:
        assert found[pair] == pytest.approx(expected[pair])


def test_cooccurrence_worked_by_hand() -> None:
    """Ten dialogues of two turns, dog answered with bone in five: 20 places.

    dog 5, bone 5, together 5, expected 5 * 5 / 20: npmi = ln(4) / ln(4) = 1.
    """
    dialogues = [[{"dog"}, {"bone"}]] * 5 + [[{"sun"}, set()]] * 5
    (edge,) = cooccurrence(dialogues, false_edges=0.05)
    assert edge[:3] == ("dog", "AnsweredWith", "bone")
    assert edge.weight == pytest.approx(1.0)
    assert list(cooccurrence(dialogues[:6], false_edges=0.001)) == []  # p = 0.06


def test_one_long_dialogue_is_no_evidence() -> None:
    others = [[{"sun"}, set()]] * 50
    assert list(cooccurrence([[{"dog"}, {"bone"}] * 5, *others])) == []
    assert len(list(cooccurrence([*[[{"dog"}, {"bone"}]] * 9, *others]))) == 1


def test_words_of_one_turn_do_not_meet() -> None:
    assert list(cooccurrence([[{"dog", "bone"}]] * 100)) == []
    assert list(cooccurrence([[{"dog", "bone"}, set()]] * 100)) == []
    assert list(cooccurrence([])) == []
