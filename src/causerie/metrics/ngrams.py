"""BLEU, ROUGE and METEOR, by the packages that everyone uses, so that numbers are comparable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.options import option
from causerie.text import words
from causerie.text.tagging import Kind, lemma

if TYPE_CHECKING:
    from causerie.engines import Engines
    from causerie.models import Store

# Time and memory of these metrics grow with the product of the two lengths.
LONGEST = 20_000


@dataclass(frozen=True)
class NgramMetric(ReferenceMetric):
    """A metric with one number per comparison, for texts of limited length."""

    package: ClassVar[str]
    """The package that computes it."""
    most: ClassVar[float] = 1.0

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(0.0, self.most)),)

    def signature(self, engines: Engines) -> str:
        return f"{super().signature(engines)},{self.package} {version(self.package)}"

    @abstractmethod
    def compare_one(self, response: str, references: list[str], engines: Engines) -> Score: ...

    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> list[Scores]:
        too_long = Score.unscored(f"a text has more than {LONGEST:,} characters")
        return [
            (
                too_long
                if max(map(len, c.texts)) > LONGEST
                else self.compare_one(c.response, list(c.references), engines),
            )
            for c in comparisons
        ]


@dataclass(frozen=True)
class Bleu(NgramMetric):
    order: Literal[4, 3, 2, 1] = option(4, "maximum length of n-grams")

    name = "bleu"
    package = "sacrebleu"
    summary = "BLEU against the references, 0 to 100 (sacrebleu; sentence level)"
    most = 100.0

    def compare_one(self, response: str, references: list[str], engines: Engines) -> Score:
        return Score.of(_bleu(self.order).sentence_score(response, references).score)


@cache
def _bleu(order: int) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(max_ngram_order=order, effective_order=True)


@dataclass(frozen=True)
class Rouge(NgramMetric):
    name = "rouge"
    package = "rouge-score"
    summary = "ROUGE-L F of the best reference, 0 to 1 (rouge-score)"

    def compare_one(self, response: str, references: list[str], engines: Engines) -> Score:
        if not words(response):
            return Score.unscored("no words in the response")
        return Score.of(_rouge().score_multi(references, response)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=RougeWords())


class RougeWords:
    """A tokenizer for any script; rouge-score's own drops everything but a-z and 0-9."""

    def tokenize(self, text: str) -> list[str]:
        return [part for word in words(text) for part in word.split("'") if part]


@dataclass(frozen=True)
class Meteor(NgramMetric):
    name = "meteor"
    package = "nltk"
    summary = "METEOR of the best reference, 0 to 1 (NLTK; needs a WordNet)"

    def signature(self, engines: Engines) -> str:
        wordnet = "" if _has_nltks() else f",{WORDNET}"
        return f"{super().signature(engines)}{wordnet}"

    def compare_one(self, response: str, references: list[str], engines: Engines) -> Score:
        if not (_has_nltks() or engines.store.has(WORDNET)):
            return Score.unscored(f"WordNet is not here: run causerie models pull {WORDNET}")
        if not words(response):
            return Score.unscored("no words in the response")
        from nltk.translate.meteor_score import meteor_score

        own: dict[str, Any] = {} if _has_nltks() else {"wordnet": _stored(engines.store)}
        return Score.of(meteor_score([words(r) for r in references], words(response), **own))


WORDNET = "wordnet-3.1"
"""Name in the model store; NLTK's own WordNet (3.0) is used if it is installed."""


@cache
def _has_nltks() -> bool:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return False
    return True


@dataclass(frozen=True)
class Synonyms:
    """The part of WordNet's interface that METEOR uses: words as lemmas, groups as synsets."""

    groups: Mapping[str, tuple[str, ...]]

    def synsets(self, word: str) -> list[Synset]:
        """Return the synsets of the word and of its dictionary forms."""
        forms = dict.fromkeys((word, *(lemma(word, kind) for kind in get_args(Kind))))
        return [Synset(self.groups[form]) for form in forms if form in self.groups]


@dataclass(frozen=True)
class Synset:
    words: tuple[str, ...]

    def lemmas(self) -> list[Lemma]:
        return [Lemma(word) for word in self.words]


@dataclass(frozen=True)
class Lemma:
    word: str

    def name(self) -> str:
        """Return the word as NLTK writes it, with underscores in place of spaces."""
        return self.word.replace(" ", "_")


def _stored(store: Store) -> Synonyms:
    (entry,) = store.named(WORDNET)
    return _read_once(store.path(WORDNET) / entry.weights)


@cache
def _read_once(path: Path) -> Synonyms:
    from causerie.graph.wordnet import read_synonyms

    return Synonyms(read_synonyms(path))
