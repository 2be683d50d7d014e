"""Every maker makes its fault, and replies that only look faulty stay good."""

from __future__ import annotations

import random

import pytest

from causerie import Dialogue, Exchange
from causerie.text import words
from causerie.training.faulty import FAULTS, MAKERS, Replies, good, made

TALK = [
    ("Hi, how are you today?", "I am fine, thanks. I like long walks on the beach."),
    ("Do you have 2 dogs?", "Yes, I have 2 dogs and they are called Rex and Bella."),
    ("What do you do for work?", "I work in a bakery, we bake bread for the whole town."),
    ("Is it hard to get up so early?", "It is hard, but I always love the smell of bread."),
]


def dialogue(number: int) -> Dialogue:
    texts = [f"{text} {number}" for pair in TALK for text in pair]
    return Dialogue.from_texts(texts, id=f"d{number}")


DIALOGUES = [dialogue(number) for number in range(4)]
REPLIES = Replies(DIALOGUES)
EXCHANGES = [exchange for one in DIALOGUES for exchange in one.exchanges()]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_can_be_made_and_says_what_it_is(fault: str) -> None:
    found = 0
    for number, exchange in enumerate(EXCHANGES):
        faulty = made(exchange, fault, REPLIES, random.Random(number))
        if faulty is None:
            continue
        found += 1
        assert faulty.text.strip()
        assert faulty.text != exchange.response.text
        assert fault in faulty.faults
        assert not faulty.faults & faulty.unclear
        assert faulty.faults | faulty.unclear <= set(FAULTS)
    assert found >= 4


def test_the_same_numbers_make_the_same_faults() -> None:
    for fault in FAULTS:
        one, other = (MAKERS[fault](EXCHANGES[5], REPLIES, random.Random(3)) for _ in range(2))
        assert one == other


def test_an_echo_holds_an_earlier_turn() -> None:
    for number, exchange in enumerate(EXCHANGES):
        faulty = made(exchange, "echo", REPLIES, random.Random(number))
        if faulty:
            said = [set(words(turn.text)) for turn in exchange.last(5)]
            assert any(len(set(words(faulty.text)) & turn) >= 0.5 * len(turn) for turn in said)


def test_what_is_off_topic_comes_from_another_dialogue() -> None:
    for number, exchange in enumerate(EXCHANGES):
        faulty = made(exchange, "off_topic", REPLIES, random.Random(number))
        assert faulty is not None
        assert faulty.text not in {turn.text for turn in exchange.dialogue.turns}


def test_a_short_yes_to_a_question_is_no_dull_reply() -> None:
    asked = Exchange(Dialogue.from_texts(["Do you like tea?", "Yes."]), 1)
    told = Exchange(Dialogue.from_texts(["My dog died last week.", "OK."]), 1)
    what = Exchange(Dialogue.from_texts(["What do you like?", "Yes."]), 1)
    assert not good(asked, REPLIES).faults
    assert good(told, REPLIES).faults == {"dull"}
    assert good(what, REPLIES).faults == {"dull"}
    assert made(asked, "dull", REPLIES, random.Random(0)) is None


def test_only_questions_can_be_ignored() -> None:
    told = Exchange(DIALOGUES[0], 2)
    assert "?" not in told.last(1)[0].text
    assert made(told, "ignores_question", REPLIES, random.Random(0)) is None
