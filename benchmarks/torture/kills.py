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


def campaign(
    rng: random.Random, folder: Path, options: list[str], count: int, suffix: str
) -> tuple[int, str | None]:
    """Kill one run until it has ended; return how often, and what was wrong."""
    folder.mkdir()
    source = write_jsonl(folder / "in.jsonl", dialogues(rng, count))

    def command(name: str) -> list[str]:
        out, report = folder / f"{name}.{suffix}", folder / f"{name}.html"
        return causerie("score", source, *options, "--out", out, "--report", report)

    started = time.monotonic()
    whole = subprocess.run(command("whole"), capture_output=True, text=True, check=False)
    lasted = time.monotonic() - started
    if whole.returncode != 0:
        return 0, f"exit {whole.returncode}: {whole.stderr.strip()[-300:]}"
    kills = 0
    while True:
        process = subprocess.Popen(
            command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            # Late rather than early: what matters begins when there is something to lose.
            _, said = process.communicate(timeout=lasted * rng.triangular(0.1, 1.0, 0.8))
        except subprocess.TimeoutExpired:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            process.communicate()
            kills += 1
            if kills < 40:
                continue
            _, said = subprocess.Popen(
                command("killed"), stderr=subprocess.PIPE, text=True
            ).communicate()
        break
    for kind in (suffix, "html"):
        one, other = folder / f"whole.{kind}", folder / f"killed.{kind}"
        if not other.exists():
            return kills, f"no {other.name} after {kills} kills: {said.strip()[-300:]}"
        if one.read_bytes() != other.read_bytes().replace(b"killed.", b"whole."):
            return kills, f"{folder.name}: {kind} differs after {kills} kills"
    left = [file.name for file in folder.iterdir() if "partial" in file.name]
    return kills, f"left behind: {left}" if left else None


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
                    kills, fault = job.result()
                    tally.counts["kills"] += kills
                    tally.counts["runs"] += 1
                    if fault:
                        tally.fault(fault)
                if len(tally.faults) > 5:
                    break
        yield tally
