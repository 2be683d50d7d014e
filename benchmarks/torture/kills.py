"""Kills: a run that is killed again and again ends with the bytes of one that was not."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import FORMATS, Amounts, Tally, causerie, dialogues, write_jsonl

MOST = 20
"""Kills of one run."""


def campaign(
    rng: random.Random, folder: Path, options: list[str], count: int, suffix: str
) -> tuple[int, int, str | None]:
    """Kill one run until it has ended.

    Returns how often, how often it went on where it had been killed, and what was wrong.
    """
    folder.mkdir()
    source = write_jsonl(folder / "in.jsonl", dialogues(rng, count))

    def command(name: str) -> list[str]:
        out, report = folder / f"{name}.{suffix}", folder / f"{name}.html"
        return causerie("score", source, *options, "--out", out, "--report", report)

    started = time.monotonic()
    whole = subprocess.run(command("whole"), capture_output=True, text=True, check=False)
    lasted = time.monotonic() - started
    if whole.returncode != 0:
        return 0, 0, f"exit {whole.returncode}: {whole.stderr.strip()[-300:]}"
    kills = continued = 0
    while True:
        process = subprocess.Popen(
            command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        # Late rather than early: what matters begins when there is something to lose.
        patience = lasted * rng.triangular(0.1, 0.9, 0.6) if kills < MOST else None
        try:
            _, said = process.communicate(timeout=patience)
            ended = True
        except subprocess.TimeoutExpired:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            _, said = process.communicate()
            ended = False
            kills += 1
        continued += "continuing an interrupted run" in said
        if ended:
            break
    for kind in (suffix, "html"):
        one, other = folder / f"whole.{kind}", folder / f"killed.{kind}"
        if not other.exists():
            return kills, continued, f"no {other.name} after {kills} kills: {said.strip()[-300:]}"
        if one.read_bytes() != other.read_bytes().replace(b"killed.", b"whole."):
            return kills, continued, f"{folder.name}: {kind} differs after {kills} kills"
    left = [file.name for file in folder.iterdir() if "partial" in file.name]
    return kills, continued, f"left behind: {left}" if left else None


def killed(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    cheap = ["--metrics", "length,overlap,turns"]
    heavy = ["--metrics", "cosine,length", "--encoder", encoder, "--threads", "1"]
    plans = (
        ("kills", cheap, 3000, amounts.kills),
        ("kills with an encoder", heavy, 250, amounts.encoder_kills),
    )
    for name, options, size, wanted in plans:
        tally = Tally(name)
        number = 0
        with ThreadPoolExecutor(2) as pool:
            while tally.counts["kills"] < wanted:
                jobs = []
                for _ in range(2):
                    suffix = FORMATS[number % len(FORMATS)]
                    own = random.Random(rng.random())
                    place = folder / f"{name.replace(' ', '-')}-{number}"
                    jobs.append(pool.submit(campaign, own, place, options, size, suffix))
                    number += 1
                for job in jobs:
                    kills, continued, fault = job.result()
                    tally.counts["kills"] += kills
                    tally.counts["continued"] += continued
                    tally.counts["runs"] += 1
                    if fault:
                        tally.fault(fault)
                if len(tally.faults) > 5:
                    break
        if wanted > 10 and tally.counts["continued"] < wanted / 4:
            tally.fault("hardly any run went on where it had been killed")
        yield tally
