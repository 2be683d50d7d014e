"""Torture: kills, fuzz, tampering, company, hostile pages and full disks, counted.

    python benchmarks/torture [--seed N] [--short] [--only PART] [--encoder NAME]

Every part breaks something on purpose and counts what came of it. `--short` does a little of
each, for `make test`. Exit status 1 if anything was lost, doubled, silently different or ended
in a traceback. The seed is printed, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import random
import resource
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


def cpu_seconds() -> float:
    """Of this process and of all those it has waited for."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in own)


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
        before, spent = time.monotonic(), cpu_seconds()
        with tempfile.TemporaryDirectory() as folder:
            rng = random.Random(f"{seed} {part}")
            for tally in PARTS[part](rng, Path(folder), amounts, given.encoder):
                print(tally, flush=True)
                faults += len(tally.faults)
        took, spent = time.monotonic() - before, cpu_seconds() - spent
        print(f"  ({part} took {took:.0f} s, {spent:.0f} s of CPU)", flush=True)
    took = time.monotonic() - started
    print(f"{faults} faults in {took:.0f} s, {cpu_seconds():.0f} s of CPU (seed {seed})")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
