"""Keywords of utterances: TF-IDF weighted by part of speech, as in GRADE."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causerie.errors import CauserieError
from causerie.text.tagging import Kind, LexiconTagger, Tagger, Token

WEIGHTS: Mapping[Kind, float] = {"noun": 2.0, "verb": 1.0, "adjective": 0.5}
THRESHOLD = 0.15
LETTERS = 2
"""Minimum length of a keyword."""


@dataclass(frozen=True)
class Frequencies:
    """The number of utterances of a corpus in which each word occurs."""

    utterances: int
    counts: Mapping[str, int]
    """Number of utterances by lemma, for nouns, verbs and adjectives."""

    @classmethod
    def count(cls, texts: Iterable[str], tagger: Tagger | None = None) -> Frequencies:
        """Count the words of a corpus, one utterance per text."""
        counts: Counter[str] = Counter()
        utterances = 0
        for found in candidates(texts, tagger):
            utterances += 1
            counts.update(found)
        return cls(utterances, counts)

    def idf(self, word: str) -> float:
        return math.log10(max(1, self.utterances) / (self.counts.get(word, 0) + 1))

    def of(self, words: Container[str]) -> Frequencies:
        """Return the frequencies of these words only."""
        counts = {word: count for word, count in self.counts.items() if word in words}
        return Frequencies(self.utterances, counts)

    def write(self, file: Path) -> None:
        counts = dict(sorted(self.counts.items()))
        content = {"utterances": self.utterances, "counts": counts}
        file.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), "utf-8")

    @classmethod
    def read(cls, file: Path) -> Frequencies:
        return cls.parse(file, lambda: json.loads(file.read_text("utf-8")))

    @classmethod
    def parse(cls, file: Path, read: Callable[[], Any]) -> Frequencies:
        """Check and convert the JSON that `read` returns; errors name the file."""
        try:
            content = read()
            counts = {str(word): int(count) for word, count in content["counts"].items()}
            return cls(int(content["utterances"]), counts)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise CauserieError(f"{file} holds no word frequencies: build it again") from error


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word that carries the topic of an utterance."""

    word: str
    """The lemma."""
    kind: Kind
    score: float


@dataclass(frozen=True)
class KeywordExtractor:
    """Extracts the keywords of utterances, with inverse document frequencies of a corpus."""

    frequencies: Frequencies
    tagger: Tagger = field(default_factory=LexiconTagger)
    threshold: float = THRESHOLD

    def extract(self, texts: Sequence[str]) -> list[tuple[Keyword, ...]]:
        """Return the keywords of each text, best first; a text may have none.

        score = weight of the kind * count in the text / words in the text * idf
        """
        return list(self.stream(texts))

    def stream(self, texts: Iterable[str]) -> Iterator[tuple[Keyword, ...]]:
        """Yield the same from a stream of texts."""
        for tokens in self.tagger.tag(texts):
            yield self._keywords(tokens)

    def _keywords(self, tokens: Sequence[Token]) -> tuple[Keyword, ...]:
        counts: Counter[str] = Counter()
        kinds: dict[str, Kind] = {}
        for token in tokens:
            if token.kind and _is_candidate(token):
                counts[token.lemma] += 1
                known = kinds.setdefault(token.lemma, token.kind)
                kinds[token.lemma] = max(known, token.kind, key=WEIGHTS.__getitem__)
        scored = (
            Keyword(
                word,
                kinds[word],
                WEIGHTS[kinds[word]] * count / len(tokens) * self.frequencies.idf(word),
            )
            for word, count in counts.items()
        )
        kept = [keyword for keyword in scored if keyword.score > self.threshold]
        return tuple(sorted(kept, key=lambda keyword: (-keyword.score, keyword.word)))


def candidates(texts: Iterable[str], tagger: Tagger | None = None) -> Iterator[set[str]]:
    """Yield the keyword candidates of each text: lemmas of its nouns, verbs and adjectives."""
    for tokens in (tagger or LexiconTagger()).tag(texts):
        yield {token.lemma for token in tokens if _is_candidate(token)}


def _is_candidate(token: Token) -> bool:
    return token.kind is not None and len(token.lemma) >= LETTERS and token.lemma.isalpha()
