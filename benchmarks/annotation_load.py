"""Fifty annotators saving at once: what a save takes, and whether the log has every mark once.

    .venv/bin/python benchmarks/annotation_load.py [--seconds 60] [--annotators 50] [--pause 1.0]

Everybody marks something, waits for the answer, and thinks for half to one and a half times the
pause. One save in ten is sent twice, as after a lost connection. The server is a process of its
own, with a project in a SQLite file, or in `--database postgresql://...`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from urllib.parse import urlsplit

import numpy as np

from causerie.annotation.assignment import first_round
from causerie.annotation.project import NewItem, Settings
from causerie.annotation.store import Store
from causerie.annotation.tasks import Item, Task
from causerie.dialogue import Turn

SAID = "I think that we should go there tomorrow because it is late and the train was full"


def talk(number: int) -> Item:
    """A conversation of ten turns, of the length of those that are annotated."""
    draw = random.Random(number)
    turns = tuple(Turn("AB"[n % 2], " ".join(draw.choices(SAID.split(), k=18))) for n in range(10))
    return Item(f"talk {number}", turns, (9,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between saves")
    parser.add_argument("--database", help="instead of a file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        location = asked.database or f"{folder}/load.db"
        name = f"load {uuid.uuid4().hex}"
        people = [f"annotator {n}" for n in range(asked.annotators)]
        store = Store.open(location, create=True)
        project = store.create(name, Settings(Task.of("causes"), 2, 1.0))
        store.add_items(project, [NewItem(talk(n)) for n in range(10 * asked.annotators)])
        tokens = [store.add_person(project, person, "annotator") or "" for person in people]
        store.assign(project, first_round)
        works: dict[int, list[int]] = {}
        for one in store.snapshot(project).assignments.values():
            works.setdefault(one.person, []).append(one.id)
        process, port = serve(location, name)
        saves = [Saver(port, token, works[int(token.partition("-")[0])]) for token in tokens]
        stop = time.monotonic() + asked.seconds
        threads = [threading.Thread(target=s.run, args=[stop, asked.pause]) for s in saves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        process.send_signal(signal.SIGINT)
        process.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        now = store.snapshot(project)
        store.close()
    kept = [event.key for events in now.events.values() for event in events]
    sent = {key for saver in saves for key in saver.keys}
    times = np.array([t for saver in saves for t in saver.times]) * 1000
    print(f"{asked.annotators} annotators, {asked.seconds:g} s, {len(times):,} saves answered")
    print(f"failed: {sum(saver.failed for saver in saves)}")
    print(f"lost: {len(sent - set(kept))}, doubled: {len(kept) - len(set(kept))}")
    cpu = 1000 * (used.ru_utime + used.ru_stime) / len(times)
    print(f"CPU of the server, starting included: {cpu:.1f} ms a save")
    for share in (50, 95, 99, 100):
        print(f"p{share}: {np.percentile(times, share):.0f} ms")


class Saver:
    """One annotator."""

    def __init__(self, port: int, token: str, works: list[int]) -> None:
        self.port, self.works = port, works
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.times: list[float] = []
        self.keys: list[str] = []
        self.failed = 0

    def run(self, stop: float, pause: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        draw = random.Random(self.headers["Authorization"])
        time.sleep(draw.random() * pause)
        count = 0
        while time.monotonic() < stop:
            work = self.works[count // 5 % len(self.works)]  # about five marks an item
            count += 1
            key = uuid.uuid4().hex
            start = draw.randint(0, 40)
            body = {"turn": draw.randint(0, 8), "start": start, "stop": start + 10}
            event = {"key": key, "action": "mark", "body": {**body, "label": "cause"}}
            for _ in range(1 + (draw.random() < 0.1)):
                began = time.perf_counter()
                path = f"/annotate/api/work/{work}/events"
                connection.request("POST", path, json.dumps({"events": [event]}), self.headers)
                response = connection.getresponse()
                response.read()
                self.times.append(time.perf_counter() - began)
                if response.status == 200:
                    self.keys.append(key)
                else:
                    self.failed += 1
            time.sleep(pause * (0.5 + draw.random()))


def serve(location: str, name: str) -> tuple[subprocess.Popen[str], int]:
    """The server, and its port."""
    program = "from causerie.cli import main; main()"
    words = ["annotate", "serve", location, "--project", name, "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, int(urlsplit(process.stdout.readline().strip()).port or 0)


if __name__ == "__main__":
    main()
