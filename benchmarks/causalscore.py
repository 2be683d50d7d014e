"""Scoring with `causalscore` deep in a long conversation against early in a short one.

    python benchmarks/causalscore.py [--artifact NAME] [--responses N] [--rounds N]

Causes are sought in a window, so a response after 200 turns should cost what one after 50 does,
in time and in memory. Rounds are interleaved and the fastest of each counts. Exit status 1 if
the time per response at 200 turns is more than 1.2 times that at 50, or if memory grows with
the number of responses.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.metrics.causalscore import CausalScore

BAR = 1.2
MEMORY_BAR = 1.1
CHUNK = 1024  # as `causerie score` does

TOPICS = (
    "my dog ran away from the park near our house last night",
    "the new phone is too expensive for a student like me",
    "we should book the hotel by the sea before the summer holidays",
    "her boss gave her more work and no pay for the weekend",
    "this soup needs salt and the bread is still in the oven",
)


def responses(turns: int, count: int, rng: random.Random) -> list[Exchange]:
    """The last responses of conversations of so many turns.

    Each keeps to the words of its topic, so that a response depends on many turns and all their
    pairs are asked about.
    """
    found: list[Exchange] = []
    while len(found) < count:
        words = rng.choice(TOPICS).split()
        texts = [" ".join(rng.sample(words, rng.randint(4, len(words)))) for _ in range(turns)]
        said = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
        found += Dialogue(str(len(found)), said).exchanges()[-20:]
    return found[:count]


def seconds(metric: CausalScore, engines: Engines, exchanges: list[Exchange]) -> float:
    _, classifiers = metric.restored(engines)
    classifiers.unconditional.encoder.forget()
    classifiers.conditional.encoder.forget()
    start = time.perf_counter()
    for place in range(0, len(exchanges), CHUNK):
        metric.score_exchanges(exchanges[place : place + CHUNK], engines)
    return time.perf_counter() - start


def peak() -> int:
    """The most memory that was in use so far, in kilobytes (on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--artifact", default="causalscore")
    parser.add_argument("--responses", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    metric, engines = CausalScore(artifact=options.artifact), Engines(Settings())
    history = metric.restored(engines)[1].history
    lengths = {n: responses(n, options.responses, random.Random(n)) for n in (50, 200)}
    times = dict.fromkeys(lengths, float("inf"))
    seconds(metric, engines, lengths[50][:64])
    for _ in range(options.rounds):
        for turns, exchanges in lengths.items():
            times[turns] = min(times[turns], seconds(metric, engines, exchanges))
    found = [len(graph.dependents) for graph in metric.graphs(lengths[50], engines)]
    print(f"a response depends on {sum(found) / len(found):.1f} of {history} turns")
    for turns, taken in times.items():
        print(f"after {turns} turns: {1000 * taken / options.responses:.2f} ms per response")
    ratio = times[200] / times[50]
    print(f"time at 200 turns: {ratio:.3f} times that at 50 (bar {BAR})")
    before = peak()
    for number in range(4):
        more = responses(200, options.responses, random.Random(f"more {number}"))
        seconds(metric, engines, more)
    growth = peak() / before
    print(f"memory after four times as many: {growth:.3f} times (bar {MEMORY_BAR})")
    return int(ratio > BAR or growth > MEMORY_BAR)


if __name__ == "__main__":
    sys.exit(main())
