"""Lexical features of a reply, checked by hand and against naive formulas."""

from __future__ import annotations

import math
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.text.lexical import (
    FEATURES,
    joined_clitics,
    lexical_features,
    longest_run,
    plain_words,
)

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


def test_every_feature_has_a_sentence_and_the_order_of_the_table() -> None:
    assert list(lexical_features(["hi"], "hello there")) == list(FEATURES)


@given(WORDS, WORDS)
def test_the_longest_run_is_that_of_difflib(one: list[str], other: list[str]) -> None:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    assert longest_run(one, other) == matcher.find_longest_match().size


@pytest.mark.parametrize(
    ("apart", "together"),
    [
        ("i do n't know .", "i don't know."),
        ("it 's fine , thanks !", "it's fine, thanks!"),
        ("that ' s it", "that's it"),
        ("rock 'n' roll", "rock 'n' roll"),
    ],
)
def test_detached_clitics_are_joined(apart: str, together: str) -> None:
    assert joined_clitics(apart) == together


def test_an_echo_by_hand() -> None:
    found = lexical_features(
        ["Do you like trains?", "Yes, I like old trains."], "I like old trains"
    )
    assert found["run_last"] == 1.0
    assert found["covers_last"] == pytest.approx(4 / 5)
    assert found["overlap_last"] == 1.0
    assert found["asked"] == 0.0
    assert found["run_own"] == pytest.approx(1 / 4)


def test_repetition_by_hand() -> None:
    found = lexical_features(["hi"], "no no no no")
    assert found["stutter"] == pytest.approx(3 / 4)
    assert found["distinct"] == pytest.approx(1 / 4)
    assert found["bigrams_again"] == pytest.approx(1 - 1 / 3)


def test_questions_by_kind() -> None:
    what = lexical_features(["What is your name?"], "Bob")
    whether = lexical_features(["Are you Bob?"], "Yes, I am")
    assert (what["asked_what"], what["asked_whether"]) == (1.0, 0.0)
    assert (whether["asked_what"], whether["asked_whether"]) == (0.0, 1.0)
    assert whether["begins_yes"] == 1.0


@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=80))
def test_any_text_has_finite_numbers(context: list[str], reply: str) -> None:
    found = lexical_features(context, reply)
    assert all(map(math.isfinite, found.values()))


@given(st.lists(st.sampled_from(["Hi there.", "How are you?", "Good, thanks"]), max_size=4))
def test_casing_and_spacing_do_not_count(context: list[str]) -> None:
    reply = "It's fine, I don't mind."
    apart = "It 's  fine , I do n't mind ."
    one, other = lexical_features(context, reply), lexical_features(context, apart.lower())
    assert {k: v for k, v in one.items() if k != "letters"} == pytest.approx(
        {k: v for k, v in other.items() if k != "letters"}
    )


def test_long_texts_are_bounded() -> None:
    assert len(plain_words("word " * 10_000)) == 200
