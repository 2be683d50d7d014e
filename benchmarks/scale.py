"""What a million turns cost, by metric: CPU seconds and memory, and machines for a day's traffic.

    python benchmarks/scale.py [--seconds N] [--metrics LIST;LIST...]

Each metric is scored in a process of its own with one thread, over made-up conversations of 2 to 11
turns of 4 to 30 words, for about so many seconds after its networks are loaded and warm. Writes a
table in Markdown. What is beyond the measured turns is extrapolated: cost per turn times turns.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import time

from causerie.engines import Settings
from causerie.scoring import Plan, Scorer
from plan import dialogues

METRICS = "length,overlap;cosine;density;causalscore;grade;odes;quality,faults;perplexity;cpmi;fed"
CORES, BUSY = 8, 0.7
"""Of the machine that is reckoned with, and how busy it is kept."""
DAY = 86_400


def measure(metrics: str, seconds: float) -> dict[str, float]:
    """CPU seconds per turn, turns measured, megabytes at most."""
    talks = dialogues(200_000, random.Random(0))
    scorer = Scorer(Plan.of(metrics, settings=Settings(threads=1), speaker="all"))
    list(scorer.batches(talks[:4]))
    turns, at, share = 0, 4, 8
    start, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds and at < len(talks):
        before = time.perf_counter()
        for batch in scorer.batches(talks[at : at + share], first=1024):
            turns += len(batch)
        at += share
        took = time.perf_counter() - before
        share = min(2 * share, 200) if took < seconds / 4 else share
    spent = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": spent / turns, "turns": turns, "peak": peak}


def machines(per_turn: float, turns: float) -> str:
    """How many there must be for so many turns a day."""
    needed = per_turn * turns / (DAY * CORES * BUSY)
    return str(math.ceil(needed)) if needed > 0.1 else "<0.1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.seconds)))
        return 0
    print(
        "| metrics | turns measured | ms of CPU per turn | CPU hours per million turns | "
        "memory of a worker, MB | machines for 10 million a day | for 100 million |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for metrics in options.metrics.split(";"):
        command = [sys.executable, __file__, "--one", metrics, "--seconds", str(options.seconds)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        per_turn = found["seconds"]
        print(
            f"| {metrics.replace(',', ', ')} | {found['turns']:,} | {1000 * per_turn:.3g} "
            f"| {per_turn * 1e6 / 3600:.3g} | {found['peak']:.0f} "
            f"| {machines(per_turn, 1e7)} | {machines(per_turn, 1e8)} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
