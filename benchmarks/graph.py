"""What building, opening and searching a graph costs.

    python benchmarks/graph.py [--lines N ...] [--graph NAME]

Writes assertions in the format of ConceptNet's dump (gzipped; words as in the real one: many
that come once, few that come everywhere; a fifth in another language) and builds a graph of them
in a process of its own, whose peak memory counts. Then opens the shipped graph and measures
10,000 hop queries between random words. All of it runs on one thread; times of building and
searching are given as CPU seconds, on which the bar stands, and as seconds by the clock, which
depend on what else the machine does. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from causerie.graph import Graph, Hops
from causerie.graph.about import Source
from causerie.graph.builder import Builder
from causerie.graph.conceptnet import read_assertions

MEMORY, OPENING, QUERIES, SEARCHING = 600, 1.0, 10_000, 10.0
RELATIONS = ("RelatedTo", "FormOf", "DerivedFrom", "HasContext", "IsA", "Synonym", "UsedFor")


def write_dump(path: Path, lines: int, rng: random.Random) -> None:
    """About two words in five lines are new, as in the real dump."""
    details = json.dumps(
        {
            "dataset": "/d/wiktionary/en",
            "license": "cc:by-sa/4.0",
            "sources": [{"contributor": "/s/resource/wiktionary/en", "process": "/s/process/1"}],
            "weight": 1.0,
        }
    )
    words = 1

    def word() -> str:
        nonlocal words
        if rng.random() < 0.2:
            words += 1
            number = words
        else:
            number = int(words ** rng.random())  # low numbers most often
        return f"word_number_{number:x}"

    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        for _ in range(lines):
            relation, start, end = rng.choice(RELATIONS), word(), word()
            language = "en" if rng.random() < 0.8 else "fr"
            uris = f"/c/en/{start}/n", f"/c/{language}/{end}"
            assertion = f"/a/[/r/{relation}/,{uris[0]}/,{uris[1]}/]"
            file.write(f"{assertion}\t/r/{relation}\t{uris[0]}\t{uris[1]}\t{details}\n")


def build(dump: Path, out: Path) -> None:
    """Runs in a process of its own; prints words, edges, both times and peak memory (MB)."""
    start, start_cpu = time.perf_counter(), time.process_time()
    builder = Builder()
    builder.add(Source("generated", "CC0-1.0"), read_assertions(dump))
    about = builder.write(out)
    taken, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = peak / (2**20 if sys.platform == "darwin" else 2**10)
    print(json.dumps([about.nodes, about.edges, taken, cpu, megabytes]))


def measure_build(lines: int, folder: Path) -> bool:
    dump = folder / f"{lines}.csv.gz"
    write_dump(dump, lines, random.Random(0))
    command = [sys.executable, __file__, "--build", str(dump), str(folder / str(lines))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    nodes, edges, taken, cpu, megabytes = json.loads(done.stdout)
    print(
        f"{lines:,} lines: {nodes:,} words and {edges:,} edges in {cpu:.1f} CPU s "
        f"({lines / cpu:,.0f} lines/s; {taken:.1f} s by the clock), "
        f"at most {megabytes:.0f} MB (bar {MEMORY})",
        flush=True,
    )
    return bool(megabytes < MEMORY)


def measure_search(name: str, rng: random.Random) -> bool:
    start = time.perf_counter()
    graph = Graph.open(name)
    graph.find("dog")
    opening = time.perf_counter() - start
    pairs = [(rng.randrange(len(graph)), rng.randrange(len(graph))) for _ in range(QUERIES)]
    hops = Hops(graph)
    start, start_cpu = time.perf_counter(), time.process_time()
    found = [int(hops.between([one], [other])[0, 0]) for one, other in pairs]
    taken, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    spread = {steps: found.count(steps) for steps in sorted(set(found))}
    print(f"{name}: opened in {opening * 1000:.0f} ms (bar {OPENING * 1000:.0f})")
    print(
        f"{QUERIES:,} hop queries up to {hops.cap} in {cpu:.1f} CPU s (bar {SEARCHING:.0f}; "
        f"{taken:.1f} s by the clock); steps: {spread} (-1: none)"
    )
    return opening < OPENING and cpu < SEARCHING


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, nargs="*", default=[1_000_000, 3_000_000])
    parser.add_argument("--graph", default="everyday")
    parser.add_argument("--build", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        build(*options.build)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        passed = [measure_build(lines, Path(folder)) for lines in options.lines]
    passed.append(measure_search(options.graph, random.Random(0)))
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
