"""The load of 16 clients for a minute: the numbers of `score`, and how close to the scorer's pace.

    python benchmarks/server.py [--clients 16] [--seconds 60] [--metrics density,cosine]

Each client sends one conversation after the other to a real `causerie serve`, in a process of its
own. Then, in this process, the scorer computes the same responses, in its own batches. Printed are
responses a second of both and their ratio, failed requests, the largest difference between a
server's number and the scorer's, and how long requests took.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from causerie import Client, Dialogue, Plan, Scorer

EXAMPLES = Path(__file__).parents[1] / "examples" / "conversations.jsonl"
SERVER = "from causerie.cli import main; main()"


def talks_of(count: int) -> list[Dialogue]:
    """Conversations that differ: turns of the examples, shuffled together."""
    rng = random.Random(20)
    lines = EXAMPLES.read_text("utf-8").splitlines()
    texts = [turn["text"] for line in lines for turn in json.loads(line)["turns"]]
    return [
        Dialogue.from_texts(
            [rng.choice(texts) + f" {rng.randrange(1000)}" for _ in range(rng.randint(3, 9))],
            id=f"d{n}",
        )
        for n in range(count)
    ]


class Load:
    """What the clients ask, and what they are told."""

    def __init__(self, address: str, talks: list[Dialogue], seconds: float) -> None:
        self.client, self.talks, self.end = Client(address), talks, time.monotonic() + seconds
        self.answers: dict[int, list[dict[str, Any]]] = {}
        self.seconds: list[float] = []
        self.failed: list[str] = []
        self._next = iter(range(len(talks)))
        self._lock = threading.Lock()

    def run(self) -> None:
        """One client, until time is up."""
        while time.monotonic() < self.end:
            with self._lock:
                number = next(self._next, None)
            if number is None:
                self.failed.append("there are too few conversations for so fast a server")
                return
            start = time.perf_counter()
            try:
                self.answers[number] = self.client.score(self.talks[number], text=False)
            except Exception as error:
                self.failed.append(str(error))
            self.seconds.append(time.perf_counter() - start)


def processor_seconds(process: int) -> float:
    """What a process has used of the processor so far; other work on the machine does not count."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--metrics", default="density,causalscore,grade,cosine,overlap,length")
    options = parser.parse_args()
    talks = talks_of(200_000)
    with tempfile.TemporaryDirectory() as state:
        words = ["serve", "--port", "0", "--state", state, "--metrics", options.metrics]
        command = [sys.executable, "-c", SERVER, *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            said = ""
            while not (" is at " in said and "are loaded" in said):
                said += server.stderr.readline()
            address = next(word for word in said.split() if word.startswith("http"))
            threading.Thread(target=server.stderr.read, daemon=True).start()
            work, began = processor_seconds(server.pid), time.perf_counter()
            load = Load(address, talks, options.seconds)
            clients = [threading.Thread(target=load.run) for _ in range(options.clients)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            served_seconds = time.perf_counter() - began
            work = processor_seconds(server.pid) - work
            server.terminate()
    scorer = Scorer(Plan.of(options.metrics))
    scorer.score_all(talks[-2:])  # networks are loaded, as the server's were
    asked = sorted(load.answers)
    began, busy = time.perf_counter(), time.process_time()
    batch = scorer.score_all([talks[number] for number in asked])
    own_seconds, own_work = time.perf_counter() - began, time.process_time() - busy
    rows = [row for number in asked for row in load.answers[number]]
    differences = [
        abs(row[column] - score.value) / max(abs(score.value), 1e-6)
        for column, scores in batch.scores.items()
        for row, score in zip(rows, scores, strict=True)
        if score.value is not None
    ]
    served, own = len(rows) / served_seconds, len(batch) / own_seconds
    times = sorted(load.seconds)
    print(f"metrics: {options.metrics}; {options.clients} clients, {served_seconds:.0f} s")
    print(f"responses: {len(rows):,} in {len(asked):,} requests, {len(load.failed)} failed")
    print(f"server: {served:.1f} responses a second; scorer alone: {own:.1f}")
    print(f"ratio: {served / own:.2f} by the clock, {own_work / work:.2f} by processor time")
    print(f"largest relative difference of a number: {max(differences):.1e}")
    late = times[int(0.95 * len(times))]
    print(f"a request: median {statistics.median(times):.2f} s, p95 {late:.2f} s")
    for reason in load.failed[:5]:
        print("failed:", reason)


if __name__ == "__main__":
    main()
