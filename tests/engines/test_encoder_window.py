"""What the encoder engine cuts when an input exceeds the window, and that it counts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.engines import counted_cuts
from causerie.engines.encoder import Encoder, EncoderInput
from causerie.models import Store, load_backbone

WINDOW = 64
PAIR = WINDOW - 3  # [CLS] context [SEP] response [SEP]


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> Encoder:
    backbone = load_backbone(
        Store(offline=True),
        str(tiny_bert),
        "encoder",
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    assert backbone.window == WINDOW
    return Encoder(backbone)


def turn(letter: str, tokens: int) -> str:
    """A turn of so many tokens: single letters and commas are in the vocabulary."""
    return " ".join([letter, *"," * (tokens - 1)]) if tokens else ""


def parts(encoder: Encoder, segments: EncoderInput) -> tuple[list[str], bool]:
    """The text of each segment that the network sees, and whether that was counted as cut."""
    with counted_cuts() as cuts:
        (row,) = encoder.input.rows([segments])
    cut, seen = cuts["encoder"]
    assert seen == 1
    assert len(row) <= WINDOW
    tokens = encoder.input.tokenizer.convert_ids_to_tokens(row.ids.tolist())
    assert tokens[0] == "[CLS]"
    assert tokens[-1] == "[SEP]"
    texts = " ".join(tokens[1:-1]).split("[SEP]")
    return [text.strip() for text in texts], cut == 1


def test_what_fits_is_not_cut(encoder: Encoder) -> None:
    context = (turn("a", 20), turn("b", 21))
    response = turn("c", PAIR - 41)
    assert parts(encoder, (context, (response,))) == ([" ".join(context), response], False)


def test_the_oldest_turn_with_room_keeps_its_end(encoder: Encoder) -> None:
    context = (turn("a", 2), turn("b", 19) + " e", turn("d", 21))
    response = turn("c", PAIR - 40)
    # All of b but its first token fits; the older a does not, though it is short.
    kept = " ".join([*"," * 18, "e", context[-1]])
    assert parts(encoder, (context, (response,))) == ([kept, response], True)


def test_nothing_is_kept_of_a_turn_without_room(encoder: Encoder) -> None:
    context = (turn("a", 20), turn("d", 21))
    response = turn("c", PAIR - 21)
    assert parts(encoder, (context, (response,))) == ([context[-1], response], True)


@pytest.mark.parametrize("tokens", [PAIR, PAIR + 1, 500])
def test_response_keeps_its_beginning(encoder: Encoder, tokens: int) -> None:
    response = turn("c", tokens)
    assert parts(encoder, (("a", "b"), (response,))) == (["", turn("c", PAIR)], True)


def test_a_context_alone_loses_its_oldest_turns(encoder: Encoder) -> None:
    segments = ((turn("a", 30), turn("b", 30), turn("d", 30)),)
    kept = " ".join([*"," * (WINDOW - 2 - 60), turn("b", 30), turn("d", 30)])
    assert parts(encoder, segments) == ([kept], True)


def test_older_segments_go_before_younger_ones(encoder: Encoder) -> None:
    room = WINDOW - 4
    segments = ((turn("a", 30),), (turn("b", 30),), (turn("c", room - 30),))
    assert parts(encoder, segments) == (["", turn("b", 30), turn("c", room - 30)], True)


@settings(max_examples=150)
@given(
    context=st.lists(st.integers(0, 40), max_size=8),
    response=st.integers(0, 80),
)
def test_rule(encoder: Encoder, context: list[int], response: int) -> None:
    """As a rule on tokens: the beginning of the response, and as much of what is before it."""
    turns = [turn("abdefghi"[n], length) for n, length in enumerate(context)]
    (before, after), cut = parts(encoder, (tuple(turns), (turn("z", response),)))
    assert cut == (sum(context) + response > PAIR)
    assert after == turn("z", min(response, PAIR))
    room = PAIR - min(response, PAIR)
    assert before.split() == " ".join(turns).split()[max(0, sum(context) - room) :]


class Reader:
    """A tokenizer that counts the characters it is given."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.characters = 0

    def __call__(self, texts: list[str], **options: Any) -> Any:
        self.characters += sum(map(len, texts))
        return self.tokenizer(texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


@pytest.fixture
def reader(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader(encoder.input.tokenizer)
    monkeypatch.setattr(encoder.input, "tokenizer", reader)
    return reader


@pytest.mark.parametrize("word", ["hello ", "日", "hello日 "])
def test_five_megabytes(encoder: Encoder, reader: Reader, word: str) -> None:
    """Equal to a text that is just too long, and not read to the end: that would take seconds."""
    text, twin = word * (5_000_000 // len(word)), word * 200
    found = encoder.encode([((text,), ("hi",)), (("hi",), (text,)), ((text, "hi"), ("hi",))])
    assert 0 < reader.characters < 50_000
    expected = encoder.encode([((twin,), ("hi",)), (("hi",), (twin,)), ((twin, "hi"), ("hi",))])
    np.testing.assert_array_equal(found, expected)
    assert parts(encoder, ((text,), ("hi",)))[1]


def test_one_endless_word_counts_as_cut(encoder: Encoder) -> None:
    assert parts(encoder, (("hello",), ("x" * 5_000_000,))) == (["hello", "[UNK]"], True)
    assert parts(encoder, (("hello",), ("x" * 1_000,))) == (["hello", "[UNK]"], False)


class Counted(tuple[str, ...]):
    """Turns that count how often one of them is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[str]:
        for turn in super().__iter__():
            self.looks += 1
            yield turn


def test_ten_thousand_turns(encoder: Encoder, reader: Reader) -> None:
    """The work is bounded by the window, not by the length of the dialogue."""
    turns = [f"hello number {n}" for n in range(10_000)]
    inputs = [(Counted(turns[:n]), (turns[n],)) for n in range(9_900, 10_000)]
    windows = [(tuple(turns[n - WINDOW : n]), (turns[n],)) for n in range(9_900, 10_000)]
    recent = [row.key for row in encoder.input.rows(windows)]
    reader.characters = 0
    assert [row.key for row in encoder.input.rows(inputs)] == recent
    assert all(0 < context.looks <= 2 * WINDOW for context, _ in inputs)
    assert reader.characters <= sum(map(len, turns[9_900 - 2 * WINDOW :]))
