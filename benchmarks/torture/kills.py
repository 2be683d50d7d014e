"""Kills: a run that is killed again and again ends with the bytes of one that was not.

What is killed is a process of its own that runs the very command. It is forked from one that has
imported everything and loaded nothing, so that no kill is spent on the starting of Python.
"""

from __future__ import annotations

import atexit
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from common import FORMATS, Amounts, Tally, dialogues, write_jsonl

MOST = 20
"""Kills of one run."""
ENDED_BY_ITSELF = 300.0
"""Seconds; what takes longer hangs."""


def warm() -> None:
    """Import what the commands need; networks are loaded by the processes that are killed."""
    for name in (
        *("pyarrow.parquet", "torch", "causerie.cli", "causerie.report"),
        *("causerie.engines.encoder", "causerie.models.bert"),
    ):
        import_module(name)


@dataclass
class Forked:
    """A process that runs a command."""

    pid: int
    said: Path

    @classmethod
    def begin(cls, words: list[object], said: Path) -> Forked:
        pid = os.fork()
        if pid:
            return cls(pid, said)
        from causerie.cli import app, ending

        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.argv = ["causerie", *map(str, words)]
        status = ending.run(app)
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(status)

    def wait(self, seconds: float) -> int | None:
        """Its exit status; None if it is still at it."""
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.002)

    def kill(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)
        if self.wait(ENDED_BY_ITSELF) is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def told(self) -> str:
        return self.said.read_text("utf-8", "replace")


def campaign(
    seed: float, folder: Path, options: list[str], count: int, suffix: str, most: int
) -> tuple[int, int, str | None]:
    """Kill one run until it has ended, at most so many times.

    Returns how often, how often it went on where it had been killed, and what was wrong.
    """
    rng = random.Random(seed)
    folder.mkdir()
    source = write_jsonl(folder / "in.jsonl", dialogues(rng, count))

    def begin(name: str) -> Forked:
        out, report = folder / f"{name}.{suffix}", folder / f"{name}.html"
        words = ["score", source, *options, "--out", out, "--report", report]
        return Forked.begin(words, folder / f"{name}.said")

    started = time.monotonic()
    whole = begin("whole")
    status = whole.wait(ENDED_BY_ITSELF)
    lasted = time.monotonic() - started
    if status != 0:
        whole.kill(signal.SIGKILL) if status is None else None
        return 0, 0, f"exit {status}: {whole.told().strip()[-300:]}"
    kills = continued = 0
    ended = None
    while ended is None:
        process = begin("killed")
        # Late rather than early: what matters begins when there is something to lose.
        patience = lasted * rng.triangular(0.1, 0.6, 0.4) if kills < most else ENDED_BY_ITSELF
        ended = process.wait(patience)
        if ended is None:
            process.kill(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            if kills == most:
                return kills, continued, f"{folder.name}: it hangs after {kills} kills"
            kills += 1
        continued += "continuing an interrupted run" in process.told()
    # The last kill may have come when all was written and only the journal was left to remove.
    was_done = ended == 2 and "exists already" in process.told()
    if ended != 0 and not (was_done and (folder / "killed.html").exists()):
        return kills, continued, f"exit {ended} after {kills} kills: {process.told()[-300:]}"
    for kind in (suffix, "html"):
        one, other = folder / f"whole.{kind}", folder / f"killed.{kind}"
        if one.read_bytes() != other.read_bytes().replace(b"killed.", b"whole."):
            return kills, continued, f"{folder.name}: {kind} differs after {kills} kills"
    left = [file.name for file in folder.iterdir() if "partial" in file.name or ".tmp" in file.name]
    return kills, continued, f"left behind: {left}" if left else None


def killed(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    cheap = ["--metrics", "length,overlap,turns"]
    heavy = ["--metrics", "cosine,length", "--encoder", encoder, "--threads", "1"]
    plans = (
        ("kills", cheap, 1500, amounts.kills),
        ("kills with an encoder", heavy, 150, amounts.encoder_kills),
    )
    for name, options, size, wanted in plans:
        tally = Tally(name)
        number = 0
        with ProcessPoolExecutor(2, get_context("spawn"), initializer=warm) as pool:
            while tally.counts["kills"] < wanted and len(tally.faults) <= 5:
                jobs, left = [], wanted - tally.counts["kills"]
                runs = min(2 * len(FORMATS), left)
                for _ in range(runs):
                    suffix = FORMATS[number % len(FORMATS)]
                    place = folder / f"{name.replace(' ', '-')}-{number}"
                    task = (rng.random(), place, options, size, suffix, min(MOST, -(-left // runs)))
                    jobs.append((suffix, pool.submit(campaign, *task)))
                    number += 1
                for suffix, job in jobs:
                    kills, continued, fault = job.result()
                    tally.counts["kills"] += kills
                    tally.counts["continued"] += continued
                    tally.counts[f"runs to {suffix} with a report"] += 1
                    if fault:
                        tally.fault(fault)
        if wanted > 10 and tally.counts["continued"] < wanted / 4:
            tally.fault("hardly any run went on where it had been killed")
        yield tally
