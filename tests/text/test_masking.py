"""Obscene words are masked, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.text.masking import mask


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("what the fuck", "what the f***"),
        ("FUCKING bullshit!", "F****** b*******!"),
        ("you asshole, you dumb-ass", "you a******, you dumb-a**"),
        ("sh1t b1tch", "s*** b****"),
        ("fuuuck you motherfucker's dog", "f***** you m***********'s dog"),
        ("sh!t, bullsh!t, $hit and b!tch", "s***, b*******, $*** and b****"),
        ("5h1t a55hole", "5*** a******"),
        ("a$$ @ss @sshole", "a** @** @******"),
        ("shiiiit shitty", "s****** s*****"),
        ("kick_ass_bot", "kick_a**_bot"),
    ],
)
def test_obscene_words_keep_their_first_letter(said: str, shown: str) -> None:
    assert mask(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ѕhіt", "ѕ***"),  # the first and the third letter are Cyrillic
        ("fսck fυck", "f*** f***"),  # Armenian, Greek
        ("ｆｕｃｋ 𝐟𝐮𝐜𝐤 fúck", "ｆ*** 𝐟*** f***"),
        ("fu\u0301ck f\u200buck f\0uck", "f**** f**** f****"),
    ],
)
def test_letters_that_look_alike(said: str, shown: str) -> None:
    assert mask(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("f u c k", "f * * *"),
        ("F.U.C.K you", "F.*.*.* you"),
        ("oh s-h-i-t-", "oh s-*-*-*-"),
        ("f_u_c_k", "f_*_*_*"),
        ("f u c k y o u", "f * * * y o u"),
    ],
)
def test_letter_by_letter(said: str, shown: str) -> None:
    assert mask(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "I assess the class in Scunthorpe", "a cocktail, please", "shiitake and shitake",
        "Fukushima", "the titanic", "what the heck", "", "my dumb boss", "Matsushita", "Kinoshita",
        "Charles Dickens in the cockpit", "an assassin", "first class!", "assess the assets",
        "Harshit and Yoshitaka", "they sniggered", "magna cum laude", "455 and an A55", "wish!that",
        "if u c kate", "f u c kate", "Hi! This is it! $5", "a b c d e",
    ],
)  # fmt: skip
def test_other_words_stay(said: str) -> None:
    assert mask(said) == said


@given(st.text(), st.sampled_from(["fuck", "Shit", "bitches"]), st.text())
def test_whatever_is_around_it(before: str, word: str, after: str) -> None:
    masked = mask(f"{before} {word} {after}")
    assert word.lower() not in masked.lower()
    assert len(masked) == len(f"{before} {word} {after}")


def test_a_long_text_takes_no_longer_than_its_length_asks_for() -> None:
    """In one endless word, a match must not scan the whole word again."""
    assert mask("fuck" * 50_000) == "f" + "*" * 199_999
