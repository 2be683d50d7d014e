"""Word overlap with reference answers, by the packages that everyone uses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from causerie.errors import CauserieError
from causerie.metrics.base import Score, Scores
from causerie.metrics.reference import Comparison, ReferenceMetric
from causerie.text import words

if TYPE_CHECKING:
    from causerie.engines import Engines

# Time and memory of these metrics grow with the product of the two lengths.
LONGEST = 20_000


class NgramMetric(ReferenceMetric):
    """One number per comparison, for texts of bearable length."""

    package: ClassVar[str]
    """Who computes it."""

    @property
    def signature(self) -> str:
        return f"{super().signature},{self.package} {version(self.package)}"

    @abstractmethod
    def compare_one(self, response: str, references: list[str]) -> Score: ...

    def compare(self, comparisons: Sequence[Comparison]) -> list[Scores]:
        too_long = Score.unscored(f"a text has more than {LONGEST:,} characters")
        return [
            (
                too_long
                if max(map(len, c.texts)) > LONGEST
                else self.compare_one(c.response, list(c.references)),
            )
            for c in comparisons
        ]


class Bleu(NgramMetric):
    name = "bleu"
    package = "sacrebleu"
    summary = "BLEU against the references, 0 to 100 (sacrebleu; sentence level)"

    def __init__(self, engines: Engines, order: int = 4) -> None:
        """`order` is the length of the longest n-grams that count."""
        super().__init__(engines)
        if order not in (1, 2, 3, 4):
            raise CauserieError(f"bleu cannot have order {order!r}: use 1, 2, 3 or 4")
        self.order = order

    def compare_one(self, response: str, references: list[str]) -> Score:
        return Score.of(self._bleu.sentence_score(response, references).score)

    @cached_property
    def _bleu(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        return BLEU(max_ngram_order=self.order, effective_order=True)


class Rouge(NgramMetric):
    name = "rouge"
    package = "rouge-score"
    summary = "ROUGE-L F of the best reference, 0 to 1 (rouge-score)"

    def compare_one(self, response: str, references: list[str]) -> Score:
        if not words(response):
            return Score.unscored("no words in the response")
        return Score.of(self._rouge.score_multi(references, response)["rougeL"].fmeasure)

    @cached_property
    def _rouge(self) -> Any:
        from rouge_score.rouge_scorer import RougeScorer

        return RougeScorer(["rougeL"], tokenizer=RougeWords())


class RougeWords:
    """What rouge-score does to English, for every script; its own drops all but a-z and 0-9."""

    def tokenize(self, text: str) -> list[str]:
        return [part for word in words(text) for part in word.split("'") if part]


class Meteor(NgramMetric):
    name = "meteor"
    package = "nltk"
    summary = "METEOR of the best reference, 0 to 1 (NLTK; needs its WordNet)"

    def compare_one(self, response: str, references: list[str]) -> Score:
        if not self._has_wordnet:
            return Score.unscored(
                "WordNet is not installed: run python -m nltk.downloader wordnet omw-1.4"
            )
        if not words(response):
            return Score.unscored("no words in the response")
        from nltk.translate.meteor_score import meteor_score

        return Score.of(meteor_score([words(r) for r in references], words(response)))

    @cached_property
    def _has_wordnet(self) -> bool:
        from nltk.corpus import wordnet

        try:
            wordnet.ensure_loaded()
        except LookupError:
            return False
        return True
