"""Keyword extraction beside the encoder on the same utterances.

    python benchmarks/keywords.py [--utterances N] [--rounds N]

Both work on the same distinct texts with the lengths of everyday conversation. Rounds are
interleaved and the fastest of each counts. Exit status 1 if extraction takes more than a
quarter of the encoder's time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from causerie.engines import Engines, Settings
from causerie.graph import Graph
from causerie.text.keywords import KeywordExtractor

BAR = 0.25


def utterances(graph: Graph, count: int, rng: random.Random) -> list[str]:
    """Of 4 to 30 words, common ones most often, as people write them."""
    words = sorted(graph.frequencies.counts, key=lambda word: -graph.frequencies.counts[word])
    small = ("the", "a", "to", "I", "you", "it", "and", "that", "of", "in", "don't", "was", "so")

    def word() -> str:
        return (
            rng.choice(small) if rng.random() < 0.5 else words[int(len(words) ** rng.random()) - 1]
        )

    return [
        " ".join(word() for _ in range(round(rng.triangular(4, 30, 10)))).capitalize() + "."
        for _ in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--utterances", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    graph, encoder = Graph.open(), Engines(Settings()).encoder
    texts = utterances(graph, options.utterances, random.Random(0))
    extractor = KeywordExtractor(graph.frequencies)
    found = extractor.extract(texts)  # also loads the lexicon
    encoder.encode([((text,),) for text in texts[:32]])

    def encode() -> None:
        encoder.forget()
        encoder.encode([((text,),) for text in texts])

    extracting = encoding = float("inf")
    for _ in range(options.rounds):
        encoding = min(encoding, seconds(encode))
        extracting = min(extracting, seconds(lambda: extractor.extract(texts)))
    ratio = extracting / encoding
    print(
        f"{len(texts):,} utterances, {sum(map(len, found)) / len(texts):.1f} keywords each: "
        f"{extracting / len(texts) * 1000:.2f} ms an utterance, the encoder "
        f"{encoding / len(texts) * 1000:.2f} ms"
    )
    print(f"keywords take {ratio:.3f} of the encoder's time (bar {BAR})")
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
