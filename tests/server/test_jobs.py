"""Jobs: the rows of `causerie score`, whatever becomes of the server meanwhile."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pyarrow.parquet as pq
import pytest

import causerie
from causerie.errors import CauserieError
from causerie.scoring import Plan
from causerie.server.api import api_room
from causerie.server.api.jobs import base_of
from causerie.server.app import Config
from causerie.server.serve import serve
from serving import GATE, Site, Slow, closed, serving
from terminal import ended_by, run_causerie

METRICS = "length,overlap"
TALKS = 700
"""Several batches."""


def write_talks(path: Path, count: int) -> Path:
    rng = random.Random(count)
    words = ["tea", "rain", "garden", "book", "night", "river", "friend", "song", "cat", "road"]
    with path.open("w") as file:
        for number in range(count):
            texts = [" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(5)]
            turns = [{"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(texts)]
            file.write(json.dumps({"id": f"d{number}", "turns": turns}) + "\n")
    return path


def config(state: Path, **options: Any) -> Config:
    return Config((api_room(Plan.of(METRICS), state, load=False, **options),), port=0)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(config(tmp_path / "state")) as site:
        yield site


def score_here(path: Path, out: Path, *options: str) -> bytes:
    """Return the output of `causerie score` for a file given by its name."""
    done = run_causerie("score", path, "--metrics", METRICS, "--out", out, *options)
    assert done.returncode in (0, 1), done.stderr
    return out.read_bytes()


@pytest.mark.parametrize("out", ["jsonl", "csv", "tsv", "parquet"])
def test_the_rows_of_score(site: Site, tmp_path: Path, out: str) -> None:
    path = write_talks(tmp_path / "talks.jsonl", 60)
    with path.open("a") as file:
        file.write("no record\n")
    client = causerie.Client(site.address)
    job = client.submit(path, explain=True, out=out, speaker="all")
    done = client.wait(job["id"], 0.05)
    assert (done["status"], done["rows"], done["skipped"]) == ("done", 240, 1)
    assert done["done"] == done["size"] == path.stat().st_size
    assert done["notes"] == [f"skipped {path}:61: not valid JSON: Expecting value at character 1"]
    found = client.fetch(job["id"], tmp_path / f"remote.{out}")
    local = tmp_path / f"local.{out}"
    expected = score_here(path, local, "--explain", "--speaker", "all")
    if out == "parquet":  # what such a table says about itself names the input
        assert pq.read_table(found).equals(pq.read_table(local))
    else:
        assert found.read_bytes() == expected


def test_any_format_and_some_metrics(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "replies.csv"
    path.write_text("history,reply\nHi!,Hello there.\n")
    client = causerie.Client(site.address)
    named = "context=history,response=reply"
    given = client.submit(path, ["length"], text=False, input_format="csv", columns=named)
    job = client.wait(given["id"], 0.05)
    answer = site.ask("GET", f"/v1/jobs/{job['id']}/result")
    (row,) = map(json.loads, answer.body.splitlines())
    assert row["length"] == 2
    assert {"text", "overlap"}.isdisjoint(row)
    assert answer.headers["content-disposition"] == 'attachment; filename="replies.scores.jsonl"'


def test_jobs_are_listed_and_removed(site: Site, tmp_path: Path) -> None:
    client = causerie.Client(site.address)
    path = write_talks(tmp_path / "talks.jsonl", 3)
    ids = [client.submit(path)["id"] for _ in range(3)]
    for job_id in ids:
        client.wait(job_id, 0.05)
    assert [job["id"] for job in site.ask("GET", "/v1/jobs").json["jobs"]] == ids[::-1]
    client.remove(ids[0])
    assert site.ask("GET", f"/v1/jobs/{ids[0]}").status == 404
    assert site.ask("DELETE", f"/v1/jobs/{ids[0]}").status == 404
    kept = {place.name for place in (tmp_path / "state" / "jobs").iterdir() if place.is_dir()}
    assert kept == set(ids[1:])


def test_what_cannot_be_done_is_said(site: Site, tmp_path: Path) -> None:
    client = causerie.Client(site.address)
    path = tmp_path / "noise.jsonl"
    path.write_text('{"turns": 1}\n{"turns": 2}\n')
    job = client.submit(path)
    with pytest.raises(CauserieError, match=r"noise.jsonl could not be scored: nothing to score"):
        client.wait(job["id"], 0.05)
    failed = client.job(job["id"])
    assert "2 of them bad" in failed["error"]
    assert str(tmp_path / "state") not in json.dumps(failed)
    assert site.ask("GET", f"/v1/jobs/{job['id']}/result").status == 409
    for query, body, said in (
        ("?metrics=bertscore", b"x", "offers"),
        ("?out=exe", b"x", "out"),
        ("?name=..", b"x", "name must be a file name"),
        ("", b"", "empty"),
        ("?percentiles=true", b"x", "percentiles"),
        ("?columns=colour=x", b"x", "no field 'colour'"),
        ("?input_format=pdf", b"x", "input_format"),
    ):
        answer = site.ask("POST", f"/v1/jobs{query}", body)
        assert answer.status == 422, query
        assert said in answer.json["error"]
    places = [place for place in (tmp_path / "state" / "jobs").iterdir() if place.is_dir()]
    assert [place.name for place in places] == [job["id"]]


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "a/..", "a\\..", "a\nb", "a\0b", "x" * 201])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(CauserieError, match="name must be a file name"):
        base_of(name)


def test_a_file_never_leaves_its_folder(site: Site, tmp_path: Path) -> None:
    body = json.dumps({"context": "Hi!", "response": "Hello."}).encode()
    answer = site.ask("POST", "/v1/jobs?name=../../../../etc/cron.d/x.jsonl", body)
    job = causerie.Client(site.address).wait(answer.json["id"], 0.05)
    assert job["name"] == "../../../../etc/cron.d/x.jsonl"
    inside = [path.name for path in (tmp_path / "state" / "jobs" / job["id"]).rglob("*.jsonl")]
    assert sorted(inside) == ["scores.jsonl", "x.jsonl"]
    row = json.loads(site.ask("GET", f"/v1/jobs/{job['id']}/result").body)
    assert (row["dialogue_id"], row["file"]) == ("x:1", job["name"])


def test_files_have_a_largest_size(tmp_path: Path) -> None:
    room = api_room(Plan.of(METRICS), tmp_path, load=False)
    small = replace(room, limits={"/v1/jobs": 100})
    with serving(Config((small,), port=0)) as site:
        assert site.ask("POST", "/v1/jobs", b"x" * 101).status == 413
        chunked = b"65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n"
        headers = {"Transfer-Encoding": "chunked"}
        assert site.ask("POST", "/v1/jobs", chunked, headers).status == 413
        assert [p for p in (tmp_path / "jobs").iterdir() if p.is_dir()] == []


def test_a_stopped_server_leaves_its_jobs_to_the_next(tmp_path: Path) -> None:
    path = write_talks(tmp_path / "talks.jsonl", TALKS)
    ids = []
    with serving(config(tmp_path / "state")) as site:
        client = causerie.Client(site.address)
        for _ in range(2):
            ids.append(client.submit(path)["id"])
    with serving(config(tmp_path / "state")) as site:
        client = causerie.Client(site.address)
        for number, job_id in enumerate(ids):
            client.wait(job_id, 0.05)
            out = client.fetch(job_id, tmp_path / f"{number}.jsonl")
            assert len(out.read_bytes().splitlines()) == 4 * TALKS


@pytest.mark.parametrize("end", ["remove", "stop"])
def test_a_job_under_way_can_be_ended(tmp_path: Path, end: str) -> None:
    path = write_talks(tmp_path / "talks.jsonl", 100)
    room = api_room(Plan({"slow": Slow()}), tmp_path / "state", load=False)
    with closed(), serving(Config((room,), port=0)) as site:
        client = causerie.Client(site.address)
        job = client.submit(path)
        assert GATE.begun.wait(180)
        assert client.job(job["id"])["status"] == "running"
        if end == "remove":
            client.remove(job["id"])
            while (tmp_path / "state" / "jobs" / job["id"]).exists():
                sleep(0.05)
            GATE.open.set()
            after = client.submit(write_talks(tmp_path / "few.jsonl", 2))
            assert client.wait(after["id"], 0.05)["rows"] == 8
        else:
            site.server.should_exit = True
            GATE.open.set()
    room = api_room(Plan({"slow": Slow()}), tmp_path / "state", load=False)
    with serving(Config((room,), port=0)) as site:
        client = causerie.Client(site.address)
        known = [one["id"] for one in site.ask("GET", "/v1/jobs").json["jobs"]]
        assert (job["id"] in known) == (end == "stop")
        if end == "stop":
            assert client.wait(job["id"], 0.05)["rows"] == 400


@pytest.mark.skipif(os.name != "posix", reason="signals are told otherwise there")
@pytest.mark.parametrize("moment", [14, 80])
def test_a_killed_server_loses_no_job(tmp_path: Path, moment: int) -> None:
    """It dies when it touches the jobs for the 14th or 80th time: early, or after the first."""
    state = tmp_path / "state"
    path = write_talks(tmp_path / "talks.jsonl", TALKS)
    port_file = tmp_path / "port"
    words = ["serve", "--metrics", METRICS, "--state", state, "--port", 0]
    ends: list[Any] = []
    code = _TELLING.format(file=str(port_file))
    thread = Thread(
        target=lambda: ends.append(ended_by(signal.SIGKILL, words, state / "jobs", moment, code))
    )
    thread.start()
    while not port_file.exists() and thread.is_alive():
        sleep(0.05)
    client = causerie.Client(port_file.read_text(), patience=0)
    acknowledged = []
    try:
        for _ in range(3):
            acknowledged.append(client.submit(path)["id"])
    except CauserieError:
        pass  # it is dead by now
    thread.join(180)
    assert ends[0].returncode == -signal.SIGKILL
    assert acknowledged or moment == 14
    with serving(config(state)) as site:
        client = causerie.Client(site.address)
        for job_id in acknowledged:
            client.wait(job_id, 0.05)
            out = client.fetch(job_id, tmp_path / f"{job_id}.jsonl")
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            assert [(row["dialogue_id"], row["turn"]) for row in rows] == [
                (f"d{n}", turn) for n in range(TALKS) for turn in range(1, 5)
            ]


_TELLING = """
from causerie.server import serve
from pathlib import Path
def told(self, sockets=None, before=serve.Server.startup):
    async def startup():
        await before(self, sockets)
        part = Path({file!r} + ".part")
        part.write_text(self.address)
        part.rename({file!r})
    return startup()
serve.Server.startup = told
from causerie.cli import main; main()
"""


def test_a_job_that_kills_its_server_is_given_up(tmp_path: Path) -> None:
    path = write_talks(tmp_path / "talks.jsonl", 3)
    with serving(config(tmp_path / "state")) as site:
        job = causerie.Client(site.address).submit(path)
        causerie.Client(site.address).wait(job["id"], 0.05)
    place = tmp_path / "state" / "jobs" / job["id"]
    (place / "attempts").write_text("3")
    (place / "job.json").write_text(json.dumps({**job, "status": "running"}))
    with serving(config(tmp_path / "state")) as site:
        client = causerie.Client(site.address)
        with pytest.raises(CauserieError, match="the server ended 3 times"):
            client.wait(job["id"], 0.05)


def test_a_job_that_gets_on_is_not_given_up(tmp_path: Path) -> None:
    path = write_talks(tmp_path / "talks.jsonl", 100)
    room = api_room(Plan({"slow": Slow()}), tmp_path / "state", load=False)
    with serving(Config((room,), port=0)) as site:
        client = causerie.Client(site.address)
        job = client.submit(path)
        client.wait(job["id"], 0.05)
    attempts = tmp_path / "state" / "jobs" / job["id"] / "attempts"
    assert attempts.read_text() == "0"


def test_folders_that_are_no_jobs_are_left_or_cleared(tmp_path: Path) -> None:
    jobs = tmp_path / "state" / "jobs"
    (jobs / ("a" * 24) / "input").mkdir(parents=True)  # never acknowledged
    (jobs / "something else").mkdir()
    (jobs / ("b" * 24)).mkdir()
    (jobs / ("b" * 24) / "job.json").write_text("damaged")
    with serving(config(tmp_path / "state")) as site:
        assert site.ask("GET", "/v1/jobs").json == {"jobs": []}
    assert sorted(p.name for p in jobs.iterdir() if p.is_dir()) == ["b" * 24, "something else"]


def test_a_state_folder_has_one_server(tmp_path: Path) -> None:
    with serving(config(tmp_path / "state")), pytest.raises(CauserieError, match="--state"):
        serve(config(tmp_path / "state"))
