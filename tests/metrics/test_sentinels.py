"""The trivial metrics, against naive implementations."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines
from causerie.metrics.sentinels import Overlap, Turns
from causerie.scoring.scorer import load
from causerie.text import words


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("d", tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts)))


DIALOGUES = st.lists(
    st.lists(st.text("abc .", min_size=1, max_size=9), min_size=1, max_size=8).map(
        lambda texts: dialogue(*texts)
    ),
    max_size=4,
)


def test_length() -> None:
    talk = dialogue("Hi.", "Hello there, you!", "...", "今日は")
    found = [row["length"].value for row in load("length").score(talk)]
    assert found == [3, 0, 3]


def test_turns() -> None:
    talk = dialogue("a", "b", "c", "d")
    assert [row["turns"].value for row in load("turns").score(talk)] == [1, 2, 3]
    both = Turns().score_dialogues([talk, dialogue("a")], Engines())
    assert [score.value for (score,) in both] == [4, 1]
    assert [s.value for (s,) in Turns().score_dialogues([talk], Engines(), speaker="A")] == [4]


def test_overlap_examples() -> None:
    talk = dialogue("Do you like pizza?", "Pizza is what I like, like you.", "No!", "Do I?")
    found = [row["overlap"].value for row in load("overlap").score(talk)]
    assert found == pytest.approx([3 / 6, 0, 1])


@given(dialogues=DIALOGUES, data=st.data())
def test_overlap_is_what_it_says(dialogues: list[Dialogue], data: st.DataObject) -> None:
    exchanges = data.draw(st.permutations([e for d in dialogues for e in d.exchanges()]))
    for exchange, (score,) in zip(
        exchanges, Overlap().score_exchanges(exchanges, Engines()), strict=True
    ):
        said = [word for turn in exchange.context for word in words(turn.text)]
        response = set(words(exchange.response.text))
        if said and response:
            assert score.value == sum(word in said for word in response) / len(response)
        else:
            assert score.value is None
            assert score.reason == f"no words in the {'response' if said else 'context'}"


def test_empty_context_is_unscored() -> None:
    first = Exchange(dialogue("Hello"), 0)
    assert load("overlap").score(first)["overlap"].reason == "no words in the context"
    assert load("turns").score(first)["turns"].value == 0


def test_long_dialogue_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(
        "causerie.metrics.sentinels.words", lambda text: read.append(text) or words(text)
    )
    talk = dialogue(*(f"turn number {i} of many" for i in range(1_000)))
    Overlap().score_exchanges(talk.exchanges(), Engines())
    assert max(Counter(read).values()) <= 2  # once as a response, once as context
