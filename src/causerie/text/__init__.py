"""Splitting text into words, in one way for every metric that counts or compares words."""

from __future__ import annotations

import unicodedata


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text in any script, without punctuation and symbols.

    "Don't" is one word, "e-mail" two. In scripts without spaces, every Chinese character and
    every Japanese syllable counts as a word; a run of Thai or Lao counts as one word.
    """
    spaced = unicodedata.normalize("NFC", text.lower()).translate(_SPACING)
    return [
        word
        for piece in spaced.split()
        if (word := piece.strip("'")) and (word[0].isalnum() or any(map(str.isalnum, word)))
    ]


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
