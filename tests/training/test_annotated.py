"""Annotated corpora: held-out data shares nothing with training data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causerie.errors import CauserieError
from causerie.training.corpus import AnnotatedCorpus

LONG = "we could take the early train to the old harbour and eat there"


def talk(number: int, turn: int, shared: str | None = None) -> dict[str, object]:
    """Annotate the response at a turn of a conversation whose first turns are unique."""
    said = [f"Turn {i} of conversation number {number}, as nobody else said it." for i in range(8)]
    if shared:
        said[4:6] = [shared, f"Yes, {shared}."]
    history = [{"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(said[:turn])]
    response = {"speaker": "AB"[turn % 2], "text": said[turn]}
    return {"history": history, "response": response, "cause_turns": [turn - 1]}


def corpus(path: Path, talks: list[dict[str, object]]) -> AnnotatedCorpus:
    path.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    return AnnotatedCorpus.read([path])


def test_exchanges_of_one_conversation_stay_together(tmp_path: Path) -> None:
    talks = [talk(number, turn) for number in range(10) for turn in range(2, 8)]
    whole = corpus(tmp_path / "a.jsonl", talks)
    assert len(whole.conversations) == 10
    train, valid = whole.split(0)
    assert (len(train), len(valid)) == (48, 12)
    assert not train.conversations & valid.conversations


@pytest.mark.parametrize("count", [5, 6, 9])
def test_few_conversations_can_be_split_too(tmp_path: Path, count: int) -> None:
    train, valid = corpus(tmp_path / "a.jsonl", [talk(n, 3) for n in range(count)]).split(0)
    assert len(valid.conversations) == 2  # one alone would have no negatives
    assert len(train.conversations) == count - 2


def test_too_few_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="give --valid, or at least 5 conversations"):
        corpus(tmp_path / "a.jsonl", [talk(n, 3) for n in range(4)]).split(0)


def test_apart_is_without_shared_conversations_and_shared_exchanges(tmp_path: Path) -> None:
    mine = [talk(0, 7), talk(1, 7, shared=LONG), talk(2, 7), talk(2, 3)]
    other = corpus(tmp_path / "b.jsonl", [talk(0, 3), talk(9, 7, shared=LONG)])
    left = corpus(tmp_path / "a.jsonl", mine).apart_from(other)
    assert len(left) == 2
    (conversation,) = left.conversations
    assert "number 2" in conversation[0]
