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
    "hiking", "mountains", "sister", "weekend", "trail", "lake", "miles",
    "music", "guitar", "January", "pizza", "mother", "food", "book",
    "shop", "town", "weather", "cold", "film", "home",
)  # fmt: skip
OPENINGS = ("Tell me about {}!", "Do you like {}?", "What about {}?", "I like {}.")


def annotated_talk(rng: random.Random, name: str) -> dict[str, Any]:
    """A history of four to six turns and a response caused by one or two of them."""
    topics = rng.sample(TOPICS, rng.randint(4, 6))
    causes = sorted(rng.sample(range(len(topics)), rng.choice((1, 1, 2))))
    history = [
        {"speaker": "AB"[turn % 2], "text": rng.choice(OPENINGS).format(topic)}
        for turn, topic in enumerate(topics)
    ]
    return {
        "id": name,
        "history": history,
        "response": {
            "speaker": "AB"[len(topics) % 2],
            "text": f"Really, {' and '.join(topics[turn] for turn in causes)}?",
        },
        "cause_spans": [history[turn]["text"] for turn in causes],
        "cause_turns": causes,
    }


def annotated_talks(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [annotated_talk(rng, f"{seed}-{number}") for number in range(count)]


def published(talk: dict[str, Any]) -> dict[str, Any]:
    """The same in the shape of the published files."""
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
    """The same kind of talk without its annotation."""
    talks = annotated_talks(count, seed)
    _write(path, [{"id": t["id"], "turns": [*t["history"], t["response"]]} for t in talks])
    return path


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
