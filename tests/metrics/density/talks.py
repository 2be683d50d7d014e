"""A small corpus in which the right response stays on the topic of the question."""

from __future__ import annotations

import json
import random
from pathlib import Path

TOPICS = (
    "hiking", "mountains", "sister", "weekend", "trail", "lake", "miles",
    "music", "guitar", "January", "pizza", "mother", "food", "book",
    "shop", "town", "weather", "cold", "film", "home",
)  # fmt: skip
OPENINGS = ("Tell me about {}!", "Do you like {}?", "What about {}?", "I like {}.")
ANSWERS = ("The {}, great.", "Really, {}?", "The {}, thanks.")


def write_talks(path: Path, count: int, seed: int) -> Path:
    """Return conversations of two to five turns, each on one topic."""
    rng = random.Random(seed)
    lines = []
    for number in range(count):
        topic = rng.choice(TOPICS)
        turns = [
            {
                "speaker": "AB"[turn % 2],
                "text": rng.choice(ANSWERS if turn else OPENINGS).format(topic),
            }
            for turn in range(rng.randint(2, 5))
        ]
        lines.append(json.dumps({"id": f"{seed}-{number}", "turns": turns}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
