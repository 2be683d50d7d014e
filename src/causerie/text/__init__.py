"""Splitting text into words, in one way for every metric that counts or compares words."""

from __future__ import annotations

import unicodedata


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text in any script, without punctuation and symbols.

    "Don't" is one word, "e-mail" two. In scripts without spaces, every Chinese character and
    every Japanese syllable counts as a word; a run of Thai or Lao counts as one word.
    """
    lowered = text.lower()
    if text.isascii():  # as bytes, which is quicker, and letters and digits are all that is left
        pieces = lowered.encode().translate(_ASCII).decode().split()
        return [word for piece in pieces if (word := piece.strip("'"))] if "'" in text else pieces
    pieces = unicodedata.normalize("NFC", lowered).translate(_SPACING).split()
    pieces = [word for piece in pieces if (word := piece.strip("'"))]
    return [word for word in pieces if word[0].isalnum() or any(map(str.isalnum, word))]


class _Spacing(dict[int, str]):
    """A table for `str.translate` that puts spaces between words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if 0xFE00 <= code <= 0xFE0F:  # variation selectors: not part of a word
            spaced = ""
        elif character in "'’":
            spaced = "'"
        elif unicodedata.name(character, "").startswith(("CJK ", "HIRAGANA ", "KATAKANA ")):
            spaced = f" {character} "
        elif unicodedata.category(character)[0] in "LMN" or character in "\u200c\u200d":
            spaced = character  # marks and (non-)joiners occur within words in many scripts
        else:
            spaced = " "
        self[code] = spaced
        return spaced


_SPACING = _Spacing()
_ASCII = "".join(map(chr, range(128))).translate(_SPACING).encode().ljust(256)
