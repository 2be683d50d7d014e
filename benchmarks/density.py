"""Scoring with `density` against the encoder engine alone on the same texts.

    python benchmarks/density.py [--artifact NAME] [--exchanges N] [--rounds N]

Both encode the same inputs with the same weights; what `density` adds is its small network, the
distance and the percentile. Rounds are interleaved and the fastest of each counts. Exit status 1
if scoring is slower than the engine by more than a tenth.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.engines.encoder import EncoderInput
from causerie.metrics.density import Density
from causerie.metrics.density.extractor import Towers

BAR = 1.1
CHUNK = 1024  # as `causerie score` does

WORDS = """
the a to i you it and that of in is for my on with have do was are not so but what we this
be like they at just me about know can had your good get one he she there really think time
"""


def dialogues(count: int, rng: random.Random) -> list[Exchange]:
    """Exchanges of dialogues of 2 to 11 turns, a turn of 4 to 30 words."""
    found: list[Exchange] = []
    while len(found) < count:
        texts = [
            " ".join(rng.choices(WORDS.split(), k=round(rng.triangular(4, 30, 10))))
            for _ in range(rng.randint(2, 11))
        ]
        turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
        found += Dialogue(str(len(found)), turns).exchanges()
    return found[:count]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--artifact", default="density")
    parser.add_argument("--exchanges", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    metric, engines = Density(artifact=options.artifact), Engines(Settings())
    _, human = metric.restored(engines)
    read, encoder = human.extractor, human.extractor.encoder
    exchanges = dialogues(options.exchanges, random.Random(0))
    chunks = [exchanges[i : i + CHUNK] for i in range(0, len(exchanges), CHUNK)]

    def inputs(chunk: list[Exchange]) -> list[EncoderInput]:
        if not isinstance(read, Towers):
            return [read.input(e) for e in chunk]
        turns = (turn for e in chunk for turn in (*e.last(read.history), e.response))
        return [((text,),) for text in dict.fromkeys(turn.text for turn in turns)]

    def encode() -> None:
        encoder.forget()
        for chunk in chunks:
            encoder.encode(inputs(chunk), read.pooling)

    def score() -> None:
        encoder.forget()
        for chunk in chunks:
            metric.score_exchanges(chunk, engines)

    score_time, encode_time = float("inf"), float("inf")
    metric.score_exchanges(exchanges[:64], engines)
    for _ in range(options.rounds):
        encode_time = min(encode_time, seconds(encode))
        score_time = min(score_time, seconds(score))
    ratio = score_time / encode_time
    print(
        f"{options.exchanges:,} exchanges: scoring {score_time:.1f} s, encoding {encode_time:.1f} s"
    )
    print(f"scoring takes {ratio:.3f} times the encoder engine's time (bar {BAR})")
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
