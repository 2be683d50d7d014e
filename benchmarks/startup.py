"""How long a user waits for `causerie --help`, and for the score of one conversation.

    python benchmarks/startup.py [--rounds N]

All are processes of their own, taking turns; the fastest of each counts, since other work on the
machine only ever slows one down. The bars: `--help` takes at most three times as long as an empty
program with the same library, and at most 0.3 s; `density` of one conversation with one thread,
its network in the store, at most 3 s. Both are told in seconds of the clock and of processors: on a
busy machine only the latter mean anything, and they count. Exit status 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATIO_BAR, HELP_BAR, SCORE_BAR = 3.0, 0.3, 3.0
CAUSERIE = "from causerie.cli import main; main()"
EMPTY = "import typer; app = typer.Typer(); app.command()(lambda: None); app()"
TALK = """{"id": "a", "turns": [
{"speaker": "A", "text": "Any plans for the weekend?"}, {"speaker": "B", "text": "We hike."}]}"""


def seconds(code: str, *words: str) -> tuple[float, float]:
    """Of processors and of the clock."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-c", code, *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    elapsed, after = time.perf_counter() - start, os.times()
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system, elapsed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        talk = Path(folder) / "one.jsonl"
        talk.write_text(TALK.replace("\n", " "))
        ways = {
            "empty program": (EMPTY, "--help"),
            "causerie --help": (CAUSERIE, "--help"),
            "density of one": (CAUSERIE, "score", str(talk), "-m", "density", "--threads", "1"),
        }
        taken = [{name: seconds(*way) for name, way in ways.items()} for _ in range(rounds)]
    best = {name: min(one[name][0] for one in taken) for name in ways}
    for name in ways:
        clock = min(one[name][1] for one in taken)
        print(f"{name:16} {best[name]:.2f} s of processors, {clock:.2f} s of the clock")
    empty, helped, scored = best.values()
    print(f"--help takes {helped / empty:.2f} times as long as an empty program (bar {RATIO_BAR})")
    missed = helped > RATIO_BAR * empty or helped > HELP_BAR or scored > SCORE_BAR
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
