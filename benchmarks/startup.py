"""How long a user waits for `causerie --help`, against an empty program with the same library.

    python benchmarks/startup.py [--rounds N]

Both are processes of their own, taking turns; the fastest of each counts, since other work on the
machine only ever slows one down. The bar: at most three times as long. Exit status 1 if it is
missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

BAR = 3.0
WAYS = {
    "empty program": "import typer; app = typer.Typer(); app.command()(lambda: None); app()",
    "causerie": "from causerie.cli import main; main()",
}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, "--help"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, code in WAYS.items():
            times[way].append(seconds(code))
    empty, ours = (min(times[way]) for way in WAYS)
    print(f"an empty program answers --help in {empty:.2f} s, causerie in {ours:.2f} s:")
    print(f"{ours / empty:.2f} times as long (bar {BAR})")
    return int(ours > BAR * empty)


if __name__ == "__main__":
    sys.exit(main())
