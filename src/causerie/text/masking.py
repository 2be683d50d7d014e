"""Masking of obscene words wherever people read what others said: in logs, reports and pages.

Disguised spellings are recognised, too: look-alike letters of other scripts, digits and signs
in place of letters, inserted marks or invisible characters, and letters spelt out one by one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_LOOK_ALIKES = dict(
    zip(
        "авсԁеһіјкмոорԛгѕтսυѵԝхуαεικνορτγϲѡıɑɡʟ",
        "abcdehijkmnopqrstuuvwxyaeikvoptycwiagl",
        strict=True,
    )
)
"""Letters of other scripts, with the Latin letters that they look like."""
_DIGITS = {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t"}
_SIGNS = {"a": "a@", "i": "i!|", "s": "s$"}
"""Signs that stand for a letter within a word; on their own they are punctuation."""

_START, _END = r"(?<![^\W_])", r"(?![^\W_])"


def _spelt(word: str) -> str:
    """Return a pattern of a word in which signs may replace letters; + marks a repeated letter."""
    return "".join(f"[{_SIGNS[c]}]" if c in _SIGNS else c for c in word)


_ENDINGS = (
    r"(?:s|z|y|e|ed|ing|in|ter|ters|tier|tiest|ass|bag|bags|brain|brains|face|faced|fest|head|heads"
    r"|hole|holes|house|less|list|load|loads|post|posts|poster|posting|show|shows|stain|storm)?"
)
_WORDS = (
    r"(?:bad|dumb|fat|hard|jack|lame|smart)?ass(?:es|hat|wipe)?|arses?|bastards?|bollocks"
    r"|boob(?:s|ies)?|clit|cocks?|cums?(?! laude)|cumming|cunt(?:s|y)?|dicks?|dykes?|fags?"
    r"|fuk(?:er|in|ing)?|horny|jizz|masturbat\w*|phuck\w*|pricks?|puss(?:y|ies)|retard(?:s|ed)?"
    r"|sluts?|slutty|stfu|tit(?:s|ties)|twats?|wank(?:s|er|ers|ing)?|wtf"
)
_ANYWHERE = (
    "(?<!f)f+u+c+k|(?<!b)b+i+a?t+c+h|arsehole|motherf|dickhead|cocksuck|blowjob|dildo|whore|faggot"
    "|(?<!s)nigg(?:er|a(?!rd))"
)
_OBSCENE = re.compile(
    "|".join(
        [
            _ANYWHERE,
            _spelt("asshole"),
            # Within another word it is usually part of a name, as in Matsushita.
            rf"{_START}(?:ape|bat|bird|bull|chicken|cow|dip|dog|dumb|eat|full|holy|horse|hot|jack"
            rf"|no|pig|tough)?{_spelt('s+h+i+t+')}{_ENDINGS}{_END}",
            rf"{_START}(?:{_WORDS}){_END}",
            *(rf"{_START}{_spelt(word)}{_END}" for word in ("ass", "b+itch", "dick", "tits")),
        ]
    )
)
_PIECE = re.compile(r"cum laude|\S+")
_WORD_END = re.compile(r"[^\W_]*")
_LETTERS = re.compile(r"[a-z](?P<gap>[^\w\n]{1,2}|_)[a-z](?:(?P=gap)[a-z])+")
"""Single letters with the same separator between each two."""
_SPACED = re.compile("fuck(?:er|ing)?|shit|bitch|cunt|asshole|whore")


def mask(text: str) -> str:
    """Replace all but the first letter of every obscene word by asterisks; the length stays."""
    folded = text.translate(_FOLDED)
    spans = [
        (found.start() + start, found.start() + end)
        for found in _PIECE.finditer(folded)
        for start, end in (_known if len(found[0]) <= _SHORT else _obscene)(found[0])
    ]
    spans += [span for found in _LETTERS.finditer(folded) for span in _spaced(folded, found)]
    if not spans:
        return text
    # Where marks were dropped, positions in the original text have to be looked up.
    places = range(len(text)) if len(folded) == len(text) else _places(text)
    shown = list(text)
    for start, end in spans:
        first, last = places[start], places[end - 1]
        if _is_number(text[first : last + 1]):
            continue
        for place in range(first + 1, last + 1):
            if not text[place].isspace() and text[place] not in ".,-_":
                shown[place] = "*"
    return "".join(shown)


def _obscene(piece: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of whole words that are obscene in a folded piece of text."""
    spans, at = [], 0
    while found := _OBSCENE.search(piece, at):
        start, after = found.start(), _WORD_END.match(piece, found.end())
        while start > at and piece[start - 1].isalnum():
            start -= 1
        at = after.end() if after else found.end()
        spans.append((start, at))
    return tuple(spans)


_SHORT = 40
_known = lru_cache(2**16)(_obscene)


def _spaced(folded: str, letters: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of obscene words spelt out; the outer letters may belong to other words."""
    start, end = letters.span()
    step = 1 + len(letters["gap"])
    start += step if start and folded[start - 1].isalnum() else 0
    end -= step if folded[end : end + 1].isalnum() else 0
    for found in _SPACED.finditer(folded[start:end:step]):
        yield start + found.start() * step, start + (found.end() - 1) * step + 1


def _is_number(text: str) -> bool:
    """Whether most characters are digits: 455 is a number, and A55 is the name of a thing."""
    return 2 * sum(c.isdigit() for c in text) > len(text)


def _places(text: str) -> list[int]:
    """Return the position in the text of each character that folding keeps."""
    return [place for place, character in enumerate(text) if character.translate(_FOLDED)]


class _Folded(dict[int, str]):
    """A table for `str.translate` from characters to the plain letters they are read as."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if (
            unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc")
            and character not in "\t\n\r"
        ):
            folded = ""
        else:
            plain = [
                part
                for part in unicodedata.normalize("NFKD", character.lower())
                if not unicodedata.combining(part)
            ]
            folded = plain[0] if len(plain) == 1 else character
            folded = _LOOK_ALIKES.get(folded) or _DIGITS.get(folded) or folded
        self[code] = folded
        return folded


_FOLDED = _Folded()
