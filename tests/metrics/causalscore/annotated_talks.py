"""A small corpus of annotated exchanges in which the causes of a response are known.

Every utterance is about one thing; the response names the things of its causes. Where causes
stand is drawn, so that place says little.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

TOPICS = (
    "hiking", "mountains", "sister", "weekend", "trail", "lake",
    "music", "guitar", "pizza", "mother", "book", "town",
)  # fmt: skip


def said(topic: str) -> str:
    return f"I like {topic}."


def answer(*topics: str) -> str:
    return f"Really, {' and '.join(topics)}?"


def annotated_talk(rng: random.Random, name: str) -> dict[str, Any]:
    """Return a history of four to six turns and a response caused by one or two of them."""
    topics = rng.sample(TOPICS, rng.randint(4, 6))
    causes = {rng.randrange(len(topics)) if rng.random() < 0.5 else len(topics) - 1}
    if rng.random() < 0.3:
        causes.add(rng.randrange(len(topics)))
    turns = sorted(causes)
    history = [
        {"speaker": "AB"[turn % 2], "text": said(topic)} for turn, topic in enumerate(topics)
    ]
    return {
        "id": name,
        "history": history,
        "response": {
            "speaker": "AB"[len(topics) % 2],
            "text": answer(*(topics[turn] for turn in turns)),
        },
        "cause_spans": [history[turn]["text"] for turn in turns],
        "cause_turns": turns,
    }


def annotated_talks(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [annotated_talk(rng, f"{seed}-{number}") for number in range(count)]


def published(talk: dict[str, Any]) -> dict[str, Any]:
    """Return the same in the format of the published files."""
    turns = [f"{turn['speaker']}: {turn['text']}" for turn in talk["history"]]
    response = talk["response"]
    return {
        "HITId": talk["id"],
        "history": [*turns, ""],
        "response": f"{response['speaker']}: {response['text']}",
        "entities": talk["cause_spans"],
    }


def write_annotations(path: Path, count: int, seed: int) -> Path:
    _write(path, annotated_talks(count, seed))
    return path


def write_dialogues(path: Path, count: int, seed: int) -> Path:
    """Return unannotated dialogues; three turns in four share the previous turn's topic."""
    rng = random.Random(seed)
    records = []
    for number in range(count):
        texts, topic = [], rng.choice(TOPICS)
        for _ in range(rng.randint(4, 6)):
            topic = topic if rng.random() < 0.75 else rng.choice(TOPICS)
            texts.append(rng.choice((said, answer))(topic))
        turns = [{"speaker": "AB"[n % 2], "text": text} for n, text in enumerate(texts)]
        records.append({"id": f"{seed}-{number}", "turns": turns})
    _write(path, records)
    return path


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
