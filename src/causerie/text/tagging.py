"""Parts of speech and lemmas of English words, offline."""

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

# What the lexicon knows of contractions is their two halves: do n't, they 're.
_TOKEN = re.compile(
    r"[^\W\d_]+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|[^\W_]+|(?P<mark>[.,;:!?])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text."""

    lemma: str
    """Lower-cased; of a word that is of no kind, the word itself."""
    kind: Kind | None


class Tagger(Protocol):
    """Tells what kinds of words a text is made of."""

    name: str

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        """The words of each text in order; punctuation and symbols are left out."""
        ...


class LexiconTagger:
    """Tags by a lexicon of 90,000 words and rules for context, about 0.2 ms a text.

    Case is ignored, as half of all conversations are written without it.
    """

    name = "lexicon"

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        from textblob.en import tag

        for text in texts:
            found = list(_TOKEN.finditer(text.lower().replace("’", "'")))
            # Marks are only there for the rules of context.
            joined = " ".join(token.group() for token in found)
            tags = tag(joined, tokenize=False) if found else []
            yield [
                _token(token.group(), penn)
                for token, (_, penn) in zip(found, tags, strict=True)
                if token["mark"] is None
            ]


class SpacyTagger:
    """Tags with a spaCy pipeline: better and some ten times slower; needs `causerie[spacy]`."""

    def __init__(self, model: str = "en_core_web_sm") -> None:
        """`model` is an installed pipeline or the folder of one."""
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
    """The form under which a dictionary has a lower-case word: `mice` is `mouse`.

    A word that no dictionary has stays as it is.
    """
    from lemminflect import getLemma

    known = getLemma(word, upos=_UNIVERSAL[kind], lemmatize_oov=False)
    return str(known[0]).lower() if known else word
