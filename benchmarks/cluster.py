"""Two Ray workers of one thread against one process with two threads.

    python benchmarks/cluster.py [--turns N] [--metrics LIST] [--rounds N]

Both score the same made-up conversations, from a file to tables. Start-up is left out: the process
has its networks loaded, and of the run on Ray the time is taken off that one of two single
conversations takes, which starts and loads all the same. The fastest round counts. Rows must be
equal, values to a relative 1e-5. Also told: the driver's memory early and at the end. Exit status 1
if Ray takes more than 15% longer, or if rows differ. (Called ray.py, it would be what `import ray`
finds.)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from causerie.dialogue import Dialogue
from causerie.engines import Settings
from causerie.io import to_fields
from causerie.progress import Progress
from causerie.scoring import Inputs, Layout, Plan, Run, Scorer
from causerie.scoring.cluster import Cluster, ClusterRun
from plan import dialogues

BAR = 1.15
WORKERS = 2


def write(path: Path, talks: list[Dialogue]) -> Path:
    path.write_text("".join(json.dumps(to_fields(talk)) + "\n" for talk in talks))
    return path


def resident() -> float:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def alone(scorer: Scorer, data: Path, out: Path) -> float:
    start = time.perf_counter()
    layout = Layout(scorer.plan)
    with Run(scorer, Inputs((str(data),)), layout, out=out, force=True) as run:
        run.execute()
        run.write()
    return time.perf_counter() - start


def on_ray(plan: Plan, data: list[Path], out: Path, memory: list[float]) -> float:
    """Seconds after Ray itself has started; `memory` gets the driver's after each part."""
    start = 0.0

    def watch(progress: Progress) -> None:
        nonlocal start
        start = start or time.perf_counter()
        memory.append(resident())

    with Cluster(workers=WORKERS).joined(1):
        inputs = Inputs(tuple(map(str, data)))
        cluster = Cluster(workers=WORKERS)
        with ClusterRun(Layout(plan), inputs, str(out), cluster, force=True) as run:
            run.execute(watch)
        return time.perf_counter() - start


def differing(one: Path, other: Path) -> int:
    """How many cells of two tables differ."""
    rows, others = (pq.read_table(path).to_pylist() for path in (one, other))
    wrong = abs(len(rows) - len(others))
    for row, found in zip(rows, others, strict=False):
        for name, value in row.items():
            if isinstance(value, float) and found[name] is not None:
                wrong += abs(value - found[name]) > 1e-5 * abs(value)
            else:
                wrong += value != found[name]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--metrics", default="density")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    talks = dialogues(options.turns, random.Random(0))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        data = write(place / "all.jsonl", talks)
        single = [write(place / f"{n}.jsonl", talks[n : n + 1]) for n in range(WORKERS)]
        two = Plan.of(options.metrics, settings=Settings(threads=WORKERS), speaker="all")
        one = Plan.of(options.metrics, settings=Settings(threads=1), speaker="all")
        scorer = Scorer(two)
        list(scorer.batches(talks[:3]))
        memory: list[float] = []
        took = {"one process": [], "starting": [], "Ray": []}
        for _ in range(options.rounds):
            took["one process"].append(alone(scorer, data, place / "all.parquet"))
            took["starting"].append(on_ray(one, single, place / "start", []))
            memory.clear()
            took["Ray"].append(on_ray(one, [data], place / "parts", memory))
        wrong = differing(place / "all.parquet", place / "parts")
    best = {way: min(seconds) for way, seconds in took.items()}
    ratio = (best["Ray"] - best["starting"]) / best["one process"]
    print(f"{options.metrics}, {options.turns:,} turns: ", end="")
    print(", ".join(f"{way} {seconds:.1f} s" for way, seconds in best.items()))
    print(f"Ray takes {ratio:.2f} times as long without its start (at most {BAR})")
    early = memory[len(memory) // 10]
    print(f"the driver has {early:.0f} MB after a tenth of the parts, {memory[-1]:.0f} at the end")
    print(f"{wrong} cells differ")
    return int(ratio > BAR or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
