"""A million turns with cheap metrics: seconds and memory, this version against an older one.

    python benchmarks/cheap.py --before FOLDER [--turns N] [--rounds N] [--formats LIST]

Both score the same made-up conversations of 8 to 12 turns from JSONL with `length`, `overlap` and
`turns`, each in a process of its own, one after the other; FOLDER is a checkout of the older
version, such as `git worktree add FOLDER 642e8b1` makes. The fastest round counts; start-up is in
the times. Also told: CPU seconds, and the most memory that this version takes for a tenth of the
turns and for all. Exit status 1 if it is less than three times as fast, or takes over a tenth more
memory for all than for a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
METRICS = "length,overlap,turns"
FASTER, MEMORY = 3.0, 1.1
WORDS = """
the a to i you it and that of in is for my on with have do was are not so but what we this be
like they at just me about know can had your good get one he she there really think time music
dog garden winter train kitchen brother doctor summer guitar river holiday teacher coffee window
"""


@dataclass(frozen=True)
class Took:
    seconds: float
    cpu: float
    megabytes: float


def write(path: Path, turns: int) -> Path:
    """Conversations of 8 to 12 turns of 4 to 30 words."""
    rng, words, number = random.Random(0), WORDS.split(), 0
    with path.open("w", encoding="utf-8") as file:
        while turns:
            count = min(rng.randint(8, 12), turns)
            said = [
                {
                    "speaker": "AB"[n % 2],
                    "text": " ".join(rng.choices(words, k=round(rng.triangular(4, 30, 10)))),
                }
                for n in range(count)
            ]
            file.write(json.dumps({"id": str(number), "turns": said}) + "\n")
            turns, number = turns - count, number + 1
    return path


def score(version: Path, data: Path, out: Path) -> Took:
    """One run of `causerie score` by a version."""
    command = [sys.executable, "-m", "causerie", "score", str(data), "--metrics", METRICS]
    environment = {**os.environ, "PYTHONPATH": str(version / "src")}
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--out", str(out)], env=environment, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{version} could not score: exit status {process.returncode}")
    out.unlink()
    return Took(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--formats", default="jsonl,csv,parquet")
    options = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        data = write(place / "all.jsonl", options.turns)
        tenth = write(place / "tenth.jsonl", options.turns // 10)
        print("| format | s before (CPU) | s now (CPU) | as fast (CPU) | MB, a tenth | MB, all |")
        print("|---|---:|---:|---:|---:|---:|")
        for suffix in options.formats.split(","):
            out = place / f"scores.{suffix}"
            before, now = [], []
            for _ in range(options.rounds):
                before.append(score(options.before, data, out))
                now.append(score(HERE, data, out))
            small = score(HERE, tenth, out)
            old, new = (min(took, key=lambda one: one.seconds) for took in (before, now))
            faster = old.seconds / new.seconds
            missed |= faster < FASTER or new.megabytes > MEMORY * small.megabytes
            times = f"{old.seconds:.1f} ({old.cpu:.1f}) | {new.seconds:.1f} ({new.cpu:.1f})"
            ratios = f"{faster:.2f} ({old.cpu / new.cpu:.2f})"
            memory = f"{small.megabytes:.0f} | {new.megabytes:.0f}"
            print(f"| {suffix} | {times} | {ratios} | {memory} |", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
