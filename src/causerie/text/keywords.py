"""Keywords of utterances: TF-IDF with a weight for the part of speech, as GRADE takes them."""

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
"""A shorter word is no keyword."""


@dataclass(frozen=True)
class Frequencies:
    """In how many utterances of a corpus words occur."""

    utterances: int
    counts: Mapping[str, int]
    """Nouns, verbs and adjectives by lemma."""

    @classmethod
    def count(cls, texts: Iterable[str], tagger: Tagger | None = None) -> Frequencies:
        """Of a corpus, one utterance per text."""
        counts: Counter[str] = Counter()
        utterances = 0
        for found in candidates(texts, tagger):
            utterances += 1
            counts.update(found)
        return cls(utterances, counts)

    def idf(self, word: str) -> float:
        return math.log10(max(1, self.utterances) / (self.counts.get(word, 0) + 1))

    def of(self, words: Container[str]) -> Frequencies:
        """Only of these words."""
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
        """What `read` finds in the JSON of a file."""
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
            raise CauserieError(f"{file} has no word frequencies: build it again") from error


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word that says what an utterance is about."""

    word: str
    """Its lemma."""
    kind: Kind
    score: float


@dataclass(frozen=True)
class KeywordExtractor:
    """Finds the keywords of utterances; `frequencies` say which words are common."""

    frequencies: Frequencies
    tagger: Tagger = field(default_factory=LexiconTagger)
    threshold: float = THRESHOLD

    def extract(self, texts: Sequence[str]) -> list[tuple[Keyword, ...]]:
        """The keywords of each text, the best first; texts may have none.

        score = weight of the kind * count in the text / words in the text * idf
        """
        return list(self.stream(texts))

    def stream(self, texts: Iterable[str]) -> Iterator[tuple[Keyword, ...]]:
        """The same for texts that come one after the other."""
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
    """What may be a keyword of each text: the lemmas of its nouns, verbs and adjectives."""
    for tokens in (tagger or LexiconTagger()).tag(texts):
        yield {token.lemma for token in tokens if _is_candidate(token)}


def _is_candidate(token: Token) -> bool:
    return token.kind is not None and len(token.lemma) >= LETTERS and token.lemma.isalpha()
