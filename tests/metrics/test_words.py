"""Words in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.text import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't e-mail me_now, it’s 3.5!", "don't e mail me now it's 3 5"),
        ("'Rock 'n' roll'", "rock n roll"),
        ("Café = cafe\u0301", "café café"),
        ("ÜBER straße", "über straße"),
        ("हिन्दी में बात। करो", "हिन्दी में बात करो"),
        ("شُكْرًا، جزيلا", "شُكْرًا جزيلا"),
        ("שָׁלוֹם עולם", "שָׁלוֹם עולם"),
        ("می‌خواهم", "می‌خواهم"),
        ("한국어 문장입니다.", "한국어 문장입니다"),
        ("今日は、良い。", "今 日 は 良 い"),
        ("OK好的", "ok 好 的"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("👍🏽 ❤️love 👨‍👩‍👧 :-)", "love"),
        (" \n\t'' ", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@given(st.text())
def test_words_of_words_are_the_words(text: str) -> None:
    found = words(text)
    assert words(" ".join(found)) == found
    assert all(any(map(str.isalnum, word)) for word in found)


@given(st.text(st.characters(codec="ascii")))
def test_ascii(text: str) -> None:
    """Letters and digits are always kept; everything else but apostrophes is dropped."""
    kept = "".join(c for c in text.lower() if c.isalnum())
    assert "".join(words(text)).replace("'", "") == kept
