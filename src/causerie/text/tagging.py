"""Parts of speech and lemmas of English words, offline: GRADE's keywords need both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from causerie.errors import CauserieError

Kind: TypeAlias = Literal["noun", "verb", "adjective"]
"""The parts of speech that carry topics."""

_KINDS: dict[str, Kind] = {"NN": "noun", "VB": "verb", "JJ": "adjective"}
_UNIVERSAL = {"noun": "NOUN", "verb": "VERB", "adjective": "ADJ"}

# The lexicon lists contractions as two halves: do n't, they 're.
_TOKEN = re.compile(
    r"[^\W\d_]+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|[^\W_]+|(?P<mark>[.,;:!?])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text."""

    lemma: str
    """Lower-case lemma; the word itself if it has no kind."""
    kind: Kind | None


class Tagger(Protocol):
    """Splits texts into words with their parts of speech."""

    name: str

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        """Yield the words of each text in order, without punctuation and symbols."""
        ...


class LexiconTagger:
    """Tags with a lexicon of 90,000 words and context rules, in about 0.2 ms a text.

    Case is ignored because many people chat in lower case only.
    """

    name = "lexicon"

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        from textblob.en import tag

        for text in texts:
            found = list(_TOKEN.finditer(text.lower().replace("’", "'")))
            # Only the context rules need the punctuation marks.
            joined = " ".join(token.group() for token in found)
            tags = tag(joined, tokenize=False) if found else []
            yield [
                _token(token.group(), penn)
                for token, (_, penn) in zip(found, tags, strict=True)
                if token["mark"] is None
            ]


class SpacyTagger:
    """Tags with a spaCy pipeline: better, about ten times slower; needs `causerie[spacy]`."""

    def __init__(self, model: str = "en_core_web_sm") -> None:
        """`model` is the name of an installed pipeline or the folder of one."""
        try:
            import spacy
        except ImportError as error:
            raise CauserieError(
                "spaCy is not installed: run `pip install 'causerie[spacy]'`"
            ) from error
        try:
            self._pipeline: Any = spacy.load(model, exclude=["parser", "ner"])
        except OSError as error:
            raise CauserieError(
                f"spaCy has no pipeline {model!r}: run `python -m spacy download {model}`"
            ) from error
        self.name = f"spacy {Path(model).name} {self._pipeline.meta['version']}"

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        for document in self._pipeline.pipe(texts):
            yield [
                _token(token.lower_, token.tag_)
                for token in document
                if any(map(str.isalnum, token.text))
            ]


def _token(word: str, penn: str) -> Token:
    kind = _KINDS.get(penn[:2])
    return Token(lemma(word, kind) if kind else word, kind)


@lru_cache(maxsize=1 << 16)
def lemma(word: str, kind: Kind) -> str:
    """Return the dictionary form of a lower-case word: `mouse` for `mice`.

    A word that the dictionary does not list is returned unchanged.
    """
    from lemminflect import getLemma

    known = getLemma(word, upos=_UNIVERSAL[kind], lemmatize_oov=False)
    return str(known[0]).lower() if known else word
