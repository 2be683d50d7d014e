"""Text as words."""

from __future__ import annotations

import unicodedata


def words(text: str) -> list[str]:
    """The words of a text in any script, lower-cased; punctuation and symbols are left out.

    "Don't" is one word, "e-mail" two. In scripts without spaces every Chinese character and
    every Japanese syllable counts as a word; a run of Thai or Lao is one.
    """
    spaced = unicodedata.normalize("NFC", text.lower()).translate(_SPACING)
    return [
        word
        for piece in spaced.split()
        if (word := piece.strip("'")) and (word[0].isalnum() or any(map(str.isalnum, word)))
    ]


class _Spacing(dict[int, str]):
    """For `str.translate`: what each character becomes so that words stand between spaces."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if 0xFE00 <= code <= 0xFE0F:  # how to draw the character before: no part of a word
            spaced = ""
        elif character in "'’":
            spaced = "'"
        elif unicodedata.name(character, "").startswith(("CJK ", "HIRAGANA ", "KATAKANA ")):
            spaced = f" {character} "
        elif unicodedata.category(character)[0] in "LMN" or character in "\u200c\u200d":
            spaced = character  # marks and (non-)joiners are within words in many scripts
        else:
            spaced = " "
        self[code] = spaced
        return spaced


_SPACING = _Spacing()
