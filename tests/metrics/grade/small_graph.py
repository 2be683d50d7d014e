"""A commonsense graph made by hand, and texts about its words."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.graph import Graph
from causerie.graph.about import Source
from causerie.graph.builder import Builder
from causerie.graph.edges import Edge
from causerie.text.keywords import Frequencies

LINKS = (
    ("dog", "pet"), ("pet", "cat"), ("dog", "leash"), ("leash", "walk"), ("pet", "animal"),
    ("animal", "zoo"), ("moon", "star"),
)  # fmt: skip
"""dog - pet - cat, dog - leash - walk, pet - animal - zoo; moon and star are elsewhere."""
DIMENSION = 8

TOPICS = (
    "dog", "train", "doctor", "guitar", "river", "bread", "garden", "winter", "ticket", "school",
    "coffee", "letter", "picture", "bank", "flower", "horse", "island", "jacket", "kitchen",
    "lamp", "market", "novel", "orange", "pencil", "rain", "salad", "tennis", "uncle", "violin",
    "window",
)  # fmt: skip
OPENINGS = ("Tell me about the {}!", "Do you like the {}?", "What about the {}?")
ANSWERS = ("The {}, really?", "My {} again, thanks.", "You mean the {}?")


def small_graph(folder: Path) -> Graph:
    """The graph of `LINKS`, with random vectors; zoo has none."""
    rng = np.random.default_rng(0)
    words = sorted({word for link in LINKS for word in link} - {"zoo"})
    vectors = [(word, rng.normal(size=DIMENSION).astype(np.float32)) for word in words]
    builder = Builder()
    builder.add(Source("test", "CC0-1.0"), [Edge(a, "RelatedTo", b) for a, b in LINKS])
    builder.write(folder, vectors, "by hand", Frequencies(1000, dict.fromkeys(words, 5)))
    return Graph.open(folder)


def exchange_of(*texts: str) -> Exchange:
    turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
    return Exchange(Dialogue("d", turns), len(turns) - 1)


def write_talks(path: Path, count: int, seed: int) -> Path:
    """Conversations of three or four turns, each about one thing, which few others are about."""
    rng = random.Random(seed)
    lines = []
    for number in range(count):
        topic = TOPICS[number % len(TOPICS)]
        turns = [
            {
                "speaker": "AB"[turn % 2],
                "text": rng.choice(ANSWERS if turn else OPENINGS).format(topic),
            }
            for turn in range(rng.randint(3, 4))
        ]
        lines.append(json.dumps({"id": f"{seed}-{number}", "turns": turns}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
