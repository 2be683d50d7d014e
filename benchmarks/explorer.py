"""A million scored turns in the explorer: how long its pages wait, and what its server takes.

A table is made up (ten measures, texts, explanations, whole conversations), a server of its own is
started on it, and every page is asked for first cold and then again.

    python benchmarks/explorer.py [--turns 1000000] [--table FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SYSTEMS = ("aria", "bramble", "clover", "dune")
TURNS = 10
MEASURES = ("density", "causalscore", "grade", "cosine", "overlap", "length", "fed.specific",
            "fed.relevant", "faults.off_topic", "faults.echo")  # fmt: skip
TALK = (
    "the dog a cat stars boat plane hello what where sourdough kitchen bread rise train travel "
    "people enjoy many cold warm because never again tomorrow maybe"
)
WORDS = np.array(TALK.split())
PAGES = {
    "first screen": ["overview", "replies?order=lowest"],
    "filter by words": ["choices", "replies?text=sourdough+kitchen&system=aria"],
    "filter by scores, sorted": ["choices", "replies?least=0.5&most=1&order=highest"],
    "one conversation": ["choices", "conversation?dialogue=d{middle}"],
    "two systems": ["compare?system_a=aria&system_b=dune"],
    "history": ["runs"],
}


def sentences(count: int, length: int, generator: np.random.Generator) -> list[str]:
    return [
        " ".join(words) for words in WORDS[generator.integers(len(WORDS), size=(count, length))]
    ]


def write(path: Path, turns: int) -> None:
    """The table, as `causerie score --explain --percentiles --conversations` lays it out."""
    generator = np.random.default_rng(0)
    writer = None
    for start in range(0, turns, 50_000):
        count = min(50_000, turns - start)
        number = np.arange(start, start + count)
        dialogue, place = number // TURNS, 2 * (number % TURNS) + 1
        asked = sentences(count, 9, generator)
        columns = {
            "dialogue_id": [f"d{n}" for n in dialogue],
            "turn": place,
            "speaker": ["assistant"] * count,
            "file": ["logs.jsonl"] * count,
            "system": [SYSTEMS[n % len(SYSTEMS)] for n in dialogue],
            "message": place,
            "text": sentences(count, 14, generator),
        }
        for measure in MEASURES:
            values = generator.normal(size=count) + 0.05 * (dialogue % len(SYSTEMS))
            columns[measure] = np.where(generator.random(count) < 0.01, np.nan, values)
            if measure == "density":
                columns[f"{measure}.percentile"] = np.clip(50 + 20 * values, 0, 100)
        columns["explanation"] = [
            json.dumps({"causalscore": {"dependents": [{"turn": int(p) - 1, "p": 0.8}]}})
            for p in place
        ]
        columns["conversation"] = [
            json.dumps(
                {"side": "system", "before": [{"speaker": "u", "side": "user", "text": text}]}
            )
            for text in asked
        ]
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=10_000)
    assert writer
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--table", type=Path, help="kept for the next time, and made if missing")
    parser.add_argument("--only-table", action="store_true", help="make it, and do nothing else")
    asked = parser.parse_args()
    turns = asked.turns
    with tempfile.TemporaryDirectory() as folder:
        path = asked.table or Path(folder) / "scores.parquet"
        if not path.exists():
            write(path, turns)
        if asked.only_table:
            return
        print(f"{turns:,} turns, {len(MEASURES)} measures, {path.stat().st_size / 1e6:.0f} MB")
        server = subprocess.Popen(
            [sys.executable, "-m", "causerie", "serve", str(path), "--port", "0", "--state",
             folder],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            assert server.stderr
            line = server.stderr.readline()
            address = re.search(r"http://\S+", line)
            assert address, line
            measure(address[0], server.pid, turns)
        finally:
            server.terminate()
            server.wait()


def measure(address: str, pid: int, turns: int) -> None:
    def seconds(paths: list[str]) -> float:
        start = time.perf_counter()
        for path in paths:
            asked = path.format(middle=turns // TURNS // 2)
            with urllib.request.urlopen(f"{address}/explorer/api/{asked}") as answer:
                json.load(answer)
        return time.perf_counter() - start

    print(f"{'page':26} {'first':>8} {'again':>8} s")
    for name, paths in PAGES.items():
        first = seconds(paths)
        print(f"{name:26} {first:8.2f} {min(seconds(paths) for _ in range(3)):8.2f}", flush=True)
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found
        print(f"memory of the server at most {int(found[1]) / 1024:.0f} MB")


if __name__ == "__main__":
    main()
