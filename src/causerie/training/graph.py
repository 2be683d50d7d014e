"""Building a commonsense graph from the sources that the user has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causerie.engines import Engines
from causerie.errors import CauserieError
from causerie.graph import conceptnet, wordnet
from causerie.graph.about import About, Source
from causerie.graph.builder import Builder, check_place
from causerie.graph.conceptnet import read_assertions, read_numberbatch
from causerie.graph.corpus import count_words, read_answers, read_usage
from causerie.graph.edges import Edge, within
from causerie.graph.triples import read_triples
from causerie.graph.vectors import WordVector, reduced
from causerie.graph.wordnet import read_wordnet
from causerie.io.verified import sha256
from causerie.licences import NOT_STATED
from causerie.progress import Progress, Watch, ignore
from causerie.text.keywords import Frequencies

if TYPE_CHECKING:
    from causerie.engines.encoder import Encoder

WORDNET = "wordnet-3.1"
DIMENSION = 64
"""Default dimension of word vectors."""
_CHUNK = 2048


@dataclass(frozen=True)
class GraphPlan:
    """The sources and settings from which a graph is built."""

    out: Path
    conceptnet: Path | None = None
    """ConceptNet's dump of assertions."""
    triples: tuple[Path, ...] = ()
    wordnet: bool = False
    corpus: tuple[Path, ...] = ()
    """Files of dialogues."""
    numberbatch: Path | None = None
    """File of word vectors; without it, vectors are computed."""
    vectors: str = "encoder"
    """How vectors are computed: by the `encoder`, or from the `usage` of words in the corpus."""
    dimension: int = DIMENSION
    """Dimension of the computed vectors; 0 for none."""
    language: str = "en"
    """Language of ConceptNet's words."""
    relations: tuple[str, ...] = ()
    """Relations read from ConceptNet and the triples; empty for all."""
    spoken: int = 0
    """Minimum number of utterances of the corpus in which a word must occur."""
    licence: str = NOT_STATED
    """Licence of triples and corpus, for the card."""
    recipe: str = ""
    """The command that builds the graph, for the card."""

    def check(self) -> None:
        """Refuse an impossible plan before the work begins."""
        if not (self.conceptnet or self.triples or self.wordnet or self.corpus):
            raise CauserieError(
                "there is no source: give --conceptnet, --triples, --wordnet or --corpus"
            )
        if self.spoken and not self.corpus:
            raise CauserieError("--spoken counts utterances of a corpus: give --corpus")
        if self.vectors not in ("encoder", "usage"):
            raise CauserieError(f"--vectors must be encoder or usage, not {self.vectors}")
        if self.vectors == "usage" and not self.corpus:
            raise CauserieError("--vectors usage needs a corpus: give --corpus")
        given = (self.conceptnet, self.numberbatch, *self.triples, *self.corpus)
        for path in filter(None, given):
            if not path.is_file():
                raise CauserieError(f"{path} does not exist: check its name")
        check_place(self.out.resolve())


def build_graph(
    plan: GraphPlan,
    engines: Engines,
    watch: Watch = ignore,
) -> About:
    """Build a graph and write it to `plan.out`; bad dialogues are reported to `watch`."""
    plan.check()
    # Downloads come first: they may fail, and reading a corpus takes minutes.
    if plan.wordnet:
        engines.store.pull(WORDNET)
    if plan.dimension and not plan.numberbatch and plan.vectors == "encoder":
        _ = engines.encoder
    builder = Builder()
    frequencies = words = None
    if plan.corpus:
        frequencies = count_words(plan.corpus, watch)
        if plan.spoken:
            counts = frequencies.counts
            words = {word for word in counts if counts[word] >= plan.spoken}
    for source, edges in _sources(plan, engines, watch, frequencies, words):
        builder.add(source, edges if words is None else within(edges, words))
    vectors, origin = _vectors(plan, engines, watch, builder)
    return builder.write(plan.out, vectors, origin, frequencies, plan.recipe)


def _sources(
    plan: GraphPlan,
    engines: Engines,
    watch: Watch,
    frequencies: Frequencies | None,
    words: set[str] | None,
) -> Iterator[tuple[Source, Iterator[Edge]]]:
    if plan.conceptnet:
        edges = read_assertions(plan.conceptnet, plan.language, plan.relations, watch)
        yield _source("ConceptNet", conceptnet.LICENCE, plan.conceptnet), edges
    for path in plan.triples:
        yield _source(path.name, plan.licence, path), read_triples(path, plan.relations, watch)
    if plan.wordnet:
        watch(Progress("reading WordNet"))
        file = engines.store.pull(WORDNET) / engines.store.named(WORDNET)[0].weights
        yield _source("WordNet 3.1", wordnet.LICENCE, file), read_wordnet(file, words)
    if plan.corpus and frequencies:
        names = ", ".join(path.name for path in plan.corpus)
        edges = read_answers(plan.corpus, frequencies, words, watch)
        yield _source(f"neighbouring turns of {names}", plan.licence, *plan.corpus), edges


def _vectors(
    plan: GraphPlan, engines: Engines, watch: Watch, builder: Builder
) -> tuple[Iterator[WordVector], str]:
    """Return the vectors and a description of how they were made."""
    if plan.numberbatch:
        origin = f"ConceptNet Numberbatch ({plan.numberbatch.name}), {conceptnet.LICENCE}"
        return read_numberbatch(plan.numberbatch, builder, plan.language, watch), origin
    if not plan.dimension:
        return iter(()), ""
    words = builder.words
    if plan.vectors == "usage":
        names = ", ".join(path.name for path in plan.corpus)
        origin = f"which words stand together in {names}, {plan.dimension} singular vectors"
        return read_usage(plan.corpus, words, plan.dimension, watch), origin
    encoder = engines.encoder
    origin = (
        f"the words by {encoder.name} (SHA-256 {encoder.sha256[:12]}), "
        f"{plan.dimension} principal components"
    )
    return word_vectors(encoder, words, plan.dimension, watch), origin


def word_vectors(
    encoder: Encoder,
    words: Sequence[str],
    dimension: int = DIMENSION,
    watch: Watch = ignore,
) -> Iterator[WordVector]:
    """Yield each word with its encoder vector, reduced to `dimension` principal components."""
    vectors = np.empty((len(words), encoder.dimension), dtype=np.float32)
    for start in range(0, len(words), _CHUNK):
        chunk = words[start : start + _CHUNK]
        vectors[start : start + len(chunk)] = encoder.encode([((word,),) for word in chunk])
        watch(Progress("encoding words", start + len(chunk), len(words), "words"))
    yield from zip(words, reduced(vectors, dimension), strict=True)


def _source(name: str, licence: str, *files: Path) -> Source:
    return Source(name, licence, tuple(map(sha256, files)))
