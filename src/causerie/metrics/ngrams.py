"""Word overlap with reference answers, by the packages that everyone uses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from causerie.metrics.base import Column, Level, Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.options import option
from causerie.text import words

if TYPE_CHECKING:
    from causerie.engines import Engines

# Time and memory of these metrics grow with the product of the two lengths.
LONGEST = 20_000


@dataclass(frozen=True)
class NgramMetric(ReferenceMetric):
    """One number per comparison, for texts of bearable length."""

    package: ClassVar[str]
    """Who computes it."""
    most: ClassVar[float] = 1.0

    def columns(self, level: Level) -> tuple[Column, ...]:
        return (Column(help=self.summary, range=(0.0, self.most)),)

    def signature(self, engines: Engines) -> str:
        return f"{super().signature(engines)},{self.package} {version(self.package)}"

    @abstractmethod
    def compare_one(self, response: str, references: list[str]) -> Score: ...

    def compare(self, comparisons: Sequence[Comparison], engines: Engines) -> list[Scores]:
        too_long = Score.unscored(f"a text has more than {LONGEST:,} characters")
        return [
            (
                too_long
                if max(map(len, c.texts)) > LONGEST
                else self.compare_one(c.response, list(c.references)),
            )
            for c in comparisons
        ]


@dataclass(frozen=True)
class Bleu(NgramMetric):
    order: Literal[4, 3, 2, 1] = option(4, "length of the longest n-grams that count")

    name = "bleu"
    package = "sacrebleu"
    summary = "BLEU against the references, 0 to 100 (sacrebleu; sentence level)"
    most = 100.0

    def compare_one(self, response: str, references: list[str]) -> Score:
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

    def compare_one(self, response: str, references: list[str]) -> Score:
        if not words(response):
            return Score.unscored("no words in the response")
        return Score.of(_rouge().score_multi(references, response)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=RougeWords())


class RougeWords:
    """What rouge-score does to English, for every script; its own drops all but a-z and 0-9."""

    def tokenize(self, text: str) -> list[str]:
        return [part for word in words(text) for part in word.split("'") if part]


@dataclass(frozen=True)
class Meteor(NgramMetric):
    name = "meteor"
    package = "nltk"
    summary = "METEOR of the best reference, 0 to 1 (NLTK; needs its WordNet)"

    def compare_one(self, response: str, references: list[str]) -> Score:
        if not _has_wordnet():
            return Score.unscored(
                "WordNet is not installed: run python -m nltk.downloader wordnet omw-1.4"
            )
        if not words(response):
            return Score.unscored("no words in the response")
        from nltk.translate.meteor_score import meteor_score

        return Score.of(meteor_score([words(r) for r in references], words(response)))


@cache
def _has_wordnet() -> bool:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return False
    return True
