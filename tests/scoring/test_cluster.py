"""Runs on a real Ray of this machine: the rows of a plain run, also after kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import causerie
from causerie import CauserieError
from terminal import run_causerie

pytest.importorskip("ray", reason="Ray is not installed: pip install 'causerie[ray]'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc")

TURNS = 5
PATIENCE = 300
"""Seconds, on a busy machine."""


def fields(count: int, seed: str) -> list[dict[str, object]]:
    return [
        {
            "id": f"{seed}{index}",
            "turns": [
                {"speaker": "AB"[k % 2], "text": "tea " * (1 + (index + k) % 9)}
                for k in range(TURNS)
            ],
        }
        for index in range(count)
    ]


def ray_processes() -> set[int]:
    """The processes of Ray that descend from this one's tests, by their command lines."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                mine = b"CAUSERIE_TEST_RAY=%d\0" % os.getpid() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if mine and (b"ray::" in command or b"/ray/" in command):
                found.add(int(entry.name))
    return found


def wait_until_gone() -> None:
    end = time.monotonic() + PATIENCE
    while left := ray_processes():
        assert time.monotonic() < end, f"Ray left {left}"
        time.sleep(0.5)


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CAUSERIE_TEST_RAY", str(os.getpid()))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # or Ray writes one to the home folder
    yield
    wait_until_gone()


@pytest.mark.slow
def test_every_format_is_read_as_in_a_plain_run(tmp_path: Path) -> None:
    """Bad records and all, through the command line, by pattern and by address."""
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [json.dumps(one) + "\n" for one in fields(600, "j")]
    lines.insert(300, "{bad\n")
    (logs / "a.jsonl").write_text("".join(lines))
    pq.write_table(pa.Table.from_pylist(fields(50, "p")), logs / "b.parquet")
    rows = 'context,response\nhi,"yo\nyou"\nhi\n"ho","hu"\n'
    (logs / "c.csv").write_text(rows)
    (logs / "d.txt").write_text("A: hi\nB: yo\n\nno speaker\n\nB: hm\nA: ja\n")
    names = [str(one) for one in sorted(logs.iterdir())]
    plain, out = tmp_path / "plain.parquet", tmp_path / "out"
    options = ["--metrics", "length,overlap", "--speaker", "all"]
    expected = run_causerie("score", *names, *options, "--out", plain)
    asked = [f"file://{logs}/*.jsonl", f"{logs}/[b-d].*"]
    where = ["--runner", "ray", "--num-workers", 2, "--report", tmp_path / "page.html"]
    found = run_causerie("score", *asked, *options, "--out", out, *where)
    assert (expected.returncode, found.returncode) == (1, 1), found.stderr
    table = pq.read_table(out).to_pylist()
    for row in table:
        row["file"] = row["file"].removeprefix("file://")
    assert table == pq.read_table(plain).to_pylist()

    def skipped(text: str) -> list[str]:
        text = text.replace("file://", "")
        return sorted(line for line in text.splitlines() if line.startswith("skipped"))

    assert skipped(found.stderr) == skipped(expected.stderr)
    assert len(skipped(found.stderr)) == 3
    assert "j0" in (tmp_path / "page.html").read_text()
    again = run_causerie("score", *asked, *options, "--out", out, *where)
    assert again.returncode == 2
    assert "finished run already" in again.stderr


@pytest.mark.slow
def test_evaluate_gives_the_same_result(tmp_path: Path) -> None:
    import ray

    data = [*fields(600, "m"), {"id": "bad"}]
    plain = causerie.evaluate(data[:-1], "length", speaker="all")
    with pytest.warns(UserWarning, match="left out: data:601"):
        found = causerie.evaluate(data, "length", speaker="all", runner="ray", num_workers=2)
    assert not ray.is_initialized()
    assert found.table.equals(plain.table)
    assert len(found) == len(plain)
    assert found.worst(3) == plain.worst(3)
    assert found.summary().rejected == 1
    assert found.report(tmp_path / "page.html").stat().st_size > 1000


SLOW = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from causerie.metrics.sentinels import Length
from causerie.progress import print_note
from causerie.scoring import Inputs, Layout, Plan
from causerie.scoring.cluster import Cluster, ClusterRun

@dataclass(frozen=True)
class Slow(Length):
    name = "slow"
    def score_exchanges(self, exchanges, engines, *, explain=False):
        log = Path(os.environ["SLOW_LOG"])
        time.sleep(0.3)
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {exchanges[0].dialogue.id}\\n")
        return super().score_exchanges(exchanges, engines, explain=explain)

if __name__ == "__main__":
    import slow
    plan = Plan.of(slow.Slow(), speaker="all")
    data, out = sys.argv[1:]
    with ClusterRun(Layout(plan), Inputs((data,)), out, Cluster(workers=2)) as run:
        run.execute(print_note)
"""


@pytest.mark.slow
def test_killed_workers_and_a_killed_driver(tmp_path: Path) -> None:
    data, log, out = tmp_path / "in.jsonl", tmp_path / "log", tmp_path / "out"
    data.write_text("".join(json.dumps(one) + "\n" for one in fields(6000, "k")))
    (tmp_path / "slow.py").write_text(SLOW)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "SLOW_LOG": str(log)}
    command = [sys.executable, str(tmp_path / "slow.py"), str(data), str(out)]

    def scored() -> list[tuple[int, str]]:
        lines = log.read_text().splitlines() if log.exists() else []
        return [(int(pid), item) for pid, item in map(str.split, lines)]

    def wait_for(count: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(scored()) < count:
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    with start() as driver:
        wait_for(6)
        worker = scored()[-1][0]
        os.kill(worker, signal.SIGKILL)
        wait_for(12)
        assert len({pid for pid, _ in scored()}) > 1
        os.kill(driver.pid, signal.SIGKILL)
    wait_until_gone()  # workers may still finish what they are at
    before = scored()
    parts = list(out.glob("part-*"))
    assert 6 < len(parts) < 30
    assert not (out / "_summary.json").exists()
    with start() as driver:
        _, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, said
    assert f"{len(parts)} parts of an earlier run" in said
    again = Counter(item for _, item in scored()[len(before) :])
    assert set(again.values()) == {1}
    assert len(again) == 30 - len(parts)
    plain = causerie.evaluate(str(data), "slow=length", speaker="all")
    assert pq.read_table(out).replace_schema_metadata().equals(plain.table)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--runner", "spark", "--out", "o"], "unknown runner 'spark': use ray"),
        (["--num-workers", "2"], "have no effect without --runner"),
        (["--runner", "ray"], "name it with --out"),
        (["--runner", "ray", "--out", "o.csv"], "called like a file"),
        (["--runner", "ray", "--out", "o", "--limit", "3"], "--limit has no effect"),
        (["--runner", "ray", "--out", "o", "--scores", "s"], "--scores has no effect"),
        (["--runner", "ray", "--out", "o", "--device", "cuda"], "leave --device out"),
        (["--runner", "ray", "--out", "o", "--backend", "auto"], "name one with --backend"),
    ],
)
def test_what_has_no_meaning_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(json.dumps(fields(1, "x")[0]))
    ended = run_causerie("score", "in.jsonl", "--metrics", "length", *words)
    assert ended.returncode == 2
    assert why in ended.stderr.replace("\n", " ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl"]


def test_missing_file_and_unknown_format_are_told(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="no file is called"):
        causerie.evaluate(f"{tmp_path}/x*.jsonl", "length", runner="ray")
    with pytest.raises(CauserieError, match='need runner="ray"'):
        causerie.evaluate(["hi", "yo"], "length", num_workers=2)
