"""Corrupted responses: never empty, never the true one, and each changed in its own way."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from causerie.training.negatives import ATTACKS, contradict, corrupt, echo, persons, repeat, shuffle

texts = st.text(min_size=1).filter(lambda t: t.strip() != "")
seeds = st.integers(0, 1000)


@given(texts, texts, texts, seeds)
def test_any_text_can_be_corrupted(response: str, last: str, other: str, seed: int) -> None:
    changed = corrupt(response, last, other, random.Random(seed))
    assert changed.strip()
    assert changed != response or other == response
    assert changed == corrupt(response, last, other, random.Random(seed))
    for attack in ATTACKS.values():
        assert isinstance(attack(response, last, other, random.Random(seed)), str)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9), seeds)
def test_repeat_only_adds_words_that_were_there(words: list[str], seed: int) -> None:
    changed = repeat(" ".join(words), "", "", random.Random(seed)).split()
    assert len(changed) > len(words)
    assert set(changed) == set(words)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9), seeds)
def test_shuffle_keeps_the_words(words: list[str], seed: int) -> None:
    assert sorted(shuffle(" ".join(words), "", "", random.Random(seed)).split()) == sorted(words)


def test_echo_says_what_was_just_said() -> None:
    made = {echo("answer", "question", "", random.Random(seed)) for seed in range(20)}
    assert made == {"question", "question answer", "answer question"}


def test_persons_and_opposites() -> None:
    rng = random.Random(0)
    assert persons("I gave you my book, she said.", "", "", rng) == (
        "You gave I your book, he said."
    )
    assert contradict("Yes, it is easy. We can’t stay!", "", "", rng) == (
        "No, it isn't hard. We can stay!"
    )
    assert contradict("Tuesday.", "", "", rng) == "Tuesday."
