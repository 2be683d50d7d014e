"""Obscene words are masked, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.text.obscenity import mask


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("what the fuck", "what the f***"),
        ("FUCKING bullshit!", "F****** b*******!"),
        ("you asshole, you dumb-ass", "you a******, you dumb-a**"),
        ("sh1t b1tch", "s*** b****"),
        ("fuuuck you motherfucker's dog", "f***** you m***********'s dog"),
    ],
)
def test_obscene_words_keep_their_first_letter(said: str, shown: str) -> None:
    assert mask(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "I assess the class in Scunthorpe", "a cocktail, please", "shiitake and shitake",
        "Fukushima", "the titanic", "what the heck", "", "my dumb boss",
    ],
)  # fmt: skip
def test_other_words_stay(said: str) -> None:
    assert mask(said) == said


@given(st.text(), st.sampled_from(["fuck", "Shit", "bitches"]), st.text())
def test_whatever_is_around_it(before: str, word: str, after: str) -> None:
    masked = mask(f"{before} {word} {after}")
    assert word.lower() not in masked.lower()
    assert len(masked) == len(f"{before} {word} {after}")
    assert re.sub(r"[\w*]", "", masked) == re.sub(r"[\w*]", "", f"{before} {word} {after}")
