"""Torture: kills, fuzz, tampering, company, hostile pages and full disks, counted.

    python benchmarks/torture [--seed N] [--short] [--only PART] [--encoder NAME]

Every part breaks something on purpose and counts what came of it. `--short` does a little of
each, for `make test`. Exit status 1 if anything was lost, doubled, silently different or ended
in a traceback. The seed is printed, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from common import Amounts, Tally
from fuzz import fuzz
from kills import killed
from surroundings import changing, company, full_disks, pages
from tampering import tampering

PARTS: dict[str, Callable[[random.Random, Path, Amounts, str], Iterator[Tally]]] = {
    "kills": killed,
    "fuzz": fuzz,
    "tampering": tampering,
    "company": company,
    "changing": changing,
    "disks": full_disks,
    "pages": pages,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--encoder", default="default")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    amounts, faults, started = Amounts.few() if given.short else Amounts(), 0, time.monotonic()
    for part in given.only or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            rng = random.Random(f"{seed} {part}")
            for tally in PARTS[part](rng, Path(folder), amounts, given.encoder):
                print(tally, flush=True)
                faults += len(tally.faults)
    print(f"{faults} faults in {time.monotonic() - started:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
