"""Reader of WordNet 3.1 as XML: synsets with their words, relations and definitions."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

from causerie.errors import CauserieError
from causerie.graph.edges import Edge
from causerie.text.keywords import Frequencies, KeywordExtractor
from causerie.text.tagging import LexiconTagger, Tagger

# The file lists each relation in both directions; one is enough.
RELATIONS: Mapping[str, str] = {
    "HYPERNYM": "IsA",
    "INSTANCE_HYPERNYM": "IsA",
    "PART_HOLONYM": "PartOf",
    "MEMBER_HOLONYM": "PartOf",
    "SUBSTANCE_HOLONYM": "PartOf",
    "DERIVATION_RELATED": "DerivedFrom",
    "ANTONYM": "Antonym",
    "SIMILAR_TO": "SimilarTo",
    "ENTAILMENT": "Entails",
    "CAUSE": "Causes",
}
LICENCE = "WordNet"
"""SPDX identifier of its licence."""
SYNONYM, DEFINITION = "Synonym", "DefinedWith"
TELLING = 0.3
"""Minimum keyword score of a word in a definition: twice that of a keyword in talk."""


def notice() -> str:
    """Return the notice that must accompany everything derived from WordNet."""
    return files("causerie.graph").joinpath("wordnet_licence.txt").read_text("utf-8")


@dataclass(frozen=True)
class _Relation:
    kind: str
    synset: str
    word: int | None
    """Number of the word in the other synset, counted from 1; None for all of them."""


@dataclass(frozen=True)
class _Synset:
    words: tuple[str, ...]
    word_relations: tuple[tuple[_Relation, ...], ...]
    """Relations of each word."""
    relations: tuple[_Relation, ...]
    definition: str


def read_wordnet(
    path: Path, words: Container[str] | None = None, tagger: Tagger | None = None
) -> Iterator[Edge]:
    """Yield relations between words, and from words to the keywords of their definitions.

    `words` restricts the edges to those between them. Definitions take most of the time.
    """
    synsets = _read(path)
    for synset in synsets.values():
        for edge in _relations(synset, synsets):
            if words is None or (edge.head in words and edge.tail in words):
                yield edge
    yield from _definitions(synsets, words, tagger or LexiconTagger())


def read_synonyms(path: Path) -> dict[str, tuple[str, ...]]:
    """Return for each word all words that share a synset with it, itself included."""
    found: dict[str, dict[str, None]] = {}
    for synset in _read(path).values():
        for word in synset.words:
            found.setdefault(word, {}).update(dict.fromkeys(synset.words))
    return {word: tuple(others) for word, others in found.items()}


def _relations(synset: _Synset, synsets: Mapping[str, _Synset]) -> Iterator[Edge]:
    for place, word in enumerate(synset.words):
        for other in synset.words[place + 1 :]:
            yield Edge(word, SYNONYM, other)
        for relation in (*synset.word_relations[place], *synset.relations):
            target = synsets.get(relation.synset)
            if target is None or relation.kind not in RELATIONS:
                continue
            tails = target.words
            if relation.word is not None:
                tails = tails[relation.word - 1 : relation.word]
            for tail in tails:
                yield Edge(word, RELATIONS[relation.kind], tail)


def _definitions(
    synsets: Mapping[str, _Synset], words: Container[str] | None, tagger: Tagger
) -> Iterator[Edge]:
    texts = (synset.definition for synset in synsets.values())
    extractor = KeywordExtractor(Frequencies.count(texts, tagger), tagger, TELLING)
    defined = [
        (heads, synset.definition)
        for synset in synsets.values()
        if (heads := [word for word in synset.words if words is None or word in words])
    ]
    telling = extractor.stream(definition for _, definition in defined)
    for (heads, _), keywords in zip(defined, telling, strict=True):
        for keyword in keywords:
            if words is None or keyword.word in words:
                for head in heads:
                    yield Edge(head, DEFINITION, keyword.word)


def _read(path: Path) -> dict[str, _Synset]:
    synsets = {}
    try:
        with path.open("rb") as file:
            for _, element in ElementTree.iterparse(file):
                if element.tag == "SYNSET":
                    synsets[_text(element, "ID")] = _synset(element)
                    element.clear()
    except OSError as error:
        raise CauserieError(f"{path} cannot be read ({error.strerror})") from error
    except (ElementTree.ParseError, ValueError) as error:
        raise CauserieError(
            f"{path} is not WordNet's XML ({error}): run `causerie models verify wordnet-3.1`"
        ) from error
    if not synsets:
        raise CauserieError(f"{path} has no synsets: give the XML of WordNet 3.1")
    return synsets


def _synset(element: ElementTree.Element) -> _Synset:
    literals = element.findall("SYNONYM/LITERAL")
    return _Synset(
        words=tuple((literal.text or "").strip().lower() for literal in literals),
        word_relations=tuple(_related(literal) for literal in literals),
        relations=_related(element),
        definition=element.findtext("DEF") or "",
    )


def _related(element: ElementTree.Element) -> tuple[_Relation, ...]:
    return tuple(
        _Relation(
            kind=_text(relation, "TYPE"),
            synset=(relation.text or "").strip(),
            word=int(word) if (word := relation.findtext("TO")) else None,
        )
        for relation in element.findall("SR")
    )


def _text(element: ElementTree.Element, tag: str) -> str:
    found = element.findtext(tag)
    if not found:
        raise ValueError(f"a {element.tag} has no {tag}")
    return found
