"""Scores over HTTP from a real server: the numbers, the refusals, and the end."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

import causerie
from causerie.dialogue import Dialogue
from causerie.engines import Settings
from causerie.metrics.base import Column, Level, Metric
from causerie.scoring import Plan
from causerie.server.api import api_room
from causerie.server.app import Config
from causerie.server.remote import remote_scorer
from serving import GATE, Answer, Site, Slow, closed, serving
from terminal import run_causerie

TALK = [
    {"role": "system", "content": "You like the outdoors."},
    {"role": "user", "content": "Any plans for the weekend?"},
    {"role": "assistant", "content": "I want to hike up to the lake."},
    {"role": "user", "content": "Alone?"},
    {"role": "assistant", "content": "With my sister, if it does not rain."},
]
OWN = {
    "id": "mine",
    "turns": [{"speaker": s, "text": t} for s, t in (("A", "Hi!"), ("B", ""), ("A", "Tea?"))],
}
ROW = {"context": "Hi!\nHow are you?", "response": "Fine, and you?", "reference": "I am fine."}
METRICS = "length,overlap,cosine,bleu"


@pytest.fixture(scope="module")
def settings(tiny_bert: Path) -> Settings:
    return Settings(encoder=str(tiny_bert))


@pytest.fixture(scope="module")
def site(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    room = api_room(Plan.of(METRICS, settings=settings), tmp_path_factory.mktemp("state"))
    with serving(Config((room,), port=0)) as site:
        yield site


@contextmanager
def slow_site(folder: Path, **options: Any) -> Iterator[Site]:
    """A server whose only metric waits at the gate."""
    room = api_room(Plan({"slow": Slow()}), folder, load=False, **options)
    with serving(Config((room,), port=0)) as site:
        yield site


@dataclass(frozen=True)
class Told(Metric):
    """A metric whose columns use every field that a column has."""

    name = "told"
    summary = "says much"

    def columns(self, level: Level) -> tuple[Column, ...]:
        limits = Column("odd", "how odd", "lower", (0.0, 1.0), True, True, "sigh", 0.3)
        return (limits, Column("plain", "nothing", None, (None, 5.0)))


def score(site: Site, **body: Any) -> Answer:
    return site.ask("POST", "/v1/score", body)


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    return [{k: v for k, v in row.items() if k != "unscored"} for row in answer.json["rows"]]


def until(holds: Any) -> None:
    for _ in range(2400):
        if holds():
            return
        sleep(0.05)
    raise AssertionError("it never held")


def is_refused(site: Site) -> bool:
    try:
        site.ask("GET", "/healthz")
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize(
    ("body", "data", "options"),
    [
        ({"messages": TALK}, TALK, {}),
        ({"data": TALK}, TALK, {}),
        ({"data": [TALK, OWN]}, [TALK, OWN], {}),
        ({"data": OWN}, OWN, {"speaker": "A"}),
        ({"data": [ROW, ROW]}, [ROW, ROW], {}),
        ({"data": ["Hi!", "Hello."]}, ["Hi!", "Hello."], {"text": False}),
        ({"data": [["Hi!", "Hello."], ["A?", "B."]]}, [["Hi!", "Hello."], ["A?", "B."]], {}),
        ({"data": [TALK]}, [TALK], {"level": "dialogue"}),
        ({"data": [TALK]}, [TALK], {"level": "dialogue", "speaker": "user"}),
        ({"data": [TALK]}, [TALK], {"speaker": "all", "explain": True}),
        (
            {"data": [{"q": "Hi!", "a": "Hello."}], "columns": {"context": "q", "response": "a"}},
            [{"context": "Hi!", "response": "Hello."}],
            {},
        ),
    ],
)
def test_numbers_are_those_of_evaluate(
    site: Site, settings: Settings, body: dict[str, Any], data: Any, options: dict[str, Any]
) -> None:
    local = causerie.evaluate(data, METRICS, settings=settings, **options)
    answer = score(site, **body, **options)
    expected = local.to_pylist()
    for row in expected:
        if "explanation" in row:
            row["explanation"] = json.loads(row["explanation"])
    found = rows_of(answer)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == {
            k: pytest.approx(v, rel=1e-5) if isinstance(v, float) else v for k, v in other.items()
        }
    assert answer.json["columns"] == list(expected[0])
    assert answer.json["signature"] == local.signature


def test_chosen_turns(site: Site) -> None:
    everything = rows_of(score(site, data=[TALK, OWN], speaker="all"))
    last = rows_of(score(site, data=[TALK, OWN], turns="last", speaker="all"))
    assert last == [everything[2], everything[4]]
    some = rows_of(score(site, data=[TALK, OWN], turns=[[3, 1], [2]]))
    assert [(row["dialogue_id"], row["turn"]) for row in some] == [
        ("data:1", 3),
        ("data:1", 1),
        ("mine", 2),
    ]
    assert some[2] == everything[4]
    for turns, said in (([[1]], "1 lists"), ([[9], []], "turn 9"), ([[0], [1]], "turn 0")):
        refused = score(site, data=[TALK, OWN], turns=turns)
        assert refused.status == 422
        assert said in refused.json["error"]


def test_why_there_is_no_number(site: Site) -> None:
    rows = score(site, data=OWN, speaker="all").json["rows"]
    assert set(rows[0]["unscored"].values()) == {"empty response"}
    assert rows[1]["unscored"].keys() == {"bleu"}
    assert all(rows[1][name] is None for name in rows[1]["unscored"])


def test_bad_records_are_told(site: Site) -> None:
    answer = score(site, data=[{"turns": 3}, OWN, {"turns": [{"speaker": "A", "text": "\ud800"}]}])
    assert len(rows_of(answer)) == 2
    assert [one["record"] for one in answer.json["skipped"]] == [1, 3]
    assert "lone surrogate" in answer.json["skipped"][1]["reason"]
    nothing = score(site, data=[{"turns": 3}])
    assert nothing.status == 422
    assert "nothing to score: 1 records, 1 of them bad; record 1: turns" in nothing.json["error"]
    alone = score(site, data=[["Hi!"]])
    assert "no selected response" in alone.json["error"]


def test_names_of_files_are_only_text(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(OWN))
    rows = rows_of(score(site, data=[str(path), str(path)]))
    assert [row["text"] for row in rows] == [str(path)]
    for data in (str(path), [[1, 2], str(path)], [{"messages": str(path)}], {"data": str(path)}):
        answer = score(site, data=data)
        assert answer.status == 422, data
        assert "Tea?" not in answer.body.decode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "either messages"),
        ({"messages": TALK, "data": TALK}, "either messages"),
        ({"data": TALK, "metrics": ["bertscore"]}, "offers length, overlap, cosine, bleu"),
        ({"data": TALK, "metrics": ["bleu:order=2"]}, "offers"),
        ({"data": TALK, "percentiles": True}, "percentiles"),
        ({"data": TALK, "settings": {}}, "settings"),
        ({"data": TALK, "level": "word"}, "level"),
        ({"data": [ROW], "level": "dialogue"}, "--level dialogue"),
        ({"data": TALK, "columns": {"colour": "x"}}, "there is no field 'colour'"),
        ({"data": 3}, "data"),
    ],
)
def test_refusals_are_sentences(site: Site, body: dict[str, Any], said: str) -> None:
    answer = score(site, **body)
    assert answer.status == 422
    assert said in answer.json["error"]


def test_metrics_and_plan(site: Site) -> None:
    answer = site.ask("GET", "/v1/metrics").json
    assert [one["alias"] for one in answer["metrics"]] == METRICS.split(",")
    (cosine,) = (one for one in answer["metrics"] if one["alias"] == "cosine")
    assert cosine["needs"] == ["encoder"]
    assert cosine["columns"]["turn"][0]["column"] == "cosine"
    plan = site.ask("POST", "/v1/plan", {"metrics": ["length"], "level": "dialogue"}).json
    assert plan["signature"] == Plan.of("length", level="dialogue").signature


def test_columns_come_whole(tmp_path: Path) -> None:
    """Pages and gates here use the server's directions, ranges and limits."""
    plan = Plan({"told": Told()})
    with serving(Config((api_room(plan, tmp_path, load=False),), port=0)) as site:
        found = remote_scorer(causerie.Client(site.address), "told", "turn", None).plan
    assert found.columns == plan.columns


def test_comparisons_are_those_of_compare(site: Site, settings: Settings) -> None:
    old = [["Hi!", "Go away."], ["Any plans?", "No."], ["Tea?", "Never."]]
    new = [["Hi!", "Hello, friend."], ["Any plans?", "A walk, and you?"], ["Tea?", "Yes, please."]]
    answer = site.ask("POST", "/v1/compare", {"a": old, "b": new, "metrics": ["length", "cosine"]})
    assert answer.status == 200
    local = causerie.compare(old, new, "length,cosine", settings=settings)
    found = answer.json
    assert found["how"] == local.how
    assert found["signature"] == local.signature
    for one, other in zip(found["columns"], local.columns, strict=True):
        assert one["difference"]["value"] == pytest.approx(other.difference.value, rel=1e-5)
        assert one["p"] == pytest.approx(other.p)
    refused = site.ask("POST", "/v1/compare", {"a": [], "b": new})
    assert "a has no response to compare" in refused.json["error"]


def test_many_clients_get_what_each_asked_for(site: Site, settings: Settings) -> None:
    talks = [[f"word{n} " * (n % 7 + 1), f"answer{n} " * (n % 5 + 1)] for n in range(60)]
    local = causerie.evaluate(talks, METRICS, settings=settings).to_pylist()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda talk: rows_of(score(site, data=talk)), talks))
    for number, (rows, expected) in enumerate(zip(answers, local, strict=True)):
        assert len(rows) == 1, number
        assert rows[0]["text"] == expected["text"]
        assert rows[0]["cosine"] == pytest.approx(expected["cosine"], rel=1e-5, abs=1e-6)


def test_full_queue_is_429_and_recovers(tmp_path: Path) -> None:
    with slow_site(tmp_path, limit=2) as site, ThreadPoolExecutor(8) as pool, closed():
        first = pool.submit(score, site, data=["Hi!", "one"])
        assert GATE.begun.wait(180)
        waiting = [pool.submit(score, site, data=["Hi!", text]) for text in ("two", "three")]
        until(lambda: "causerie_queue_items 2" in site.ask("GET", "/metrics").body.decode())
        refused = score(site, data=["Hi!", "four"])
        assert refused.status == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert score(site, data=["Hi!", "x", "y", "z"]).status == 413
        GATE.open.set()
        for future, length in zip([first, *waiting], (3, 3, 5), strict=True):
            assert rows_of(future.result())[0]["slow"] == length
        assert score(site, data=["Hi!", "four"]).status == 200


def test_a_client_waits_and_asks_again(tmp_path: Path) -> None:
    with slow_site(tmp_path, limit=1) as site, ThreadPoolExecutor(4) as pool, closed():
        client = causerie.Client(site.address)
        first = pool.submit(client.score, ["Hi!", "one"])
        assert GATE.begun.wait(180)
        others = [pool.submit(client.score, ["Hi!", text]) for text in ("two", "three")]
        until(lambda: 'status="429"' in site.ask("GET", "/metrics").body.decode())
        GATE.open.set()
        assert [f.result()[0]["slow"] for f in (first, *others)] == [3, 3, 5]


def test_nothing_is_computed_for_a_client_that_left(tmp_path: Path) -> None:
    with slow_site(tmp_path) as site, ThreadPoolExecutor(1) as pool, closed():
        first = pool.submit(score, site, data=["Hi!", "one"])
        assert GATE.begun.wait(180)
        body = json.dumps({"data": ["Hi!", "two"]}).encode()
        with socket.create_connection(("127.0.0.1", site.port)) as leaving:
            head = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            leaving.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            until(lambda: "causerie_queue_items 1" in site.ask("GET", "/metrics").body.decode())
        until(lambda: "causerie_queue_items 0" in site.ask("GET", "/metrics").body.decode())
        GATE.open.set()
        first.result()
        counted = site.ask("GET", "/metrics").body.decode()
        assert "causerie_pass_items_sum 1\n" in counted


def test_time_runs_out(tmp_path: Path) -> None:
    with slow_site(tmp_path, timeout=0.3) as site, closed():
        answer = score(site, data=["Hi!", "one"])
        assert answer.status == 504
        assert "/v1/jobs" in answer.json["error"]


def test_what_was_taken_is_answered_before_the_end(tmp_path: Path) -> None:
    with slow_site(tmp_path) as site, ThreadPoolExecutor(4) as pool, closed():
        taken = [pool.submit(score, site, data=["Hi!", "one"])]
        assert GATE.begun.wait(180)
        taken += [pool.submit(score, site, data=["Hi!", text]) for text in ("two", "three")]
        until(lambda: "causerie_queue_items 2" in site.ask("GET", "/metrics").body.decode())
        site.server.should_exit = True
        until(lambda: is_refused(site))
        GATE.open.set()
        assert sorted(rows_of(one.result())[0]["text"] for one in taken) == ["one", "three", "two"]


def test_readiness(tmp_path: Path) -> None:
    room = api_room(Plan({"slow": Slow()}), tmp_path)
    with closed(), serving(Config((room,), port=0)) as site:
        early = site.ask("GET", "/readyz")
        assert (early.status, early.json["reason"]) == (503, "networks are being loaded")
        assert site.ask("GET", "/healthz").status == 200
        GATE.open.set()
        until(lambda: site.ask("GET", "/readyz").json["ready"])


def test_missing_weights_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    settings = Settings(encoder="no/such-model", models_dir=tmp_path / "models", offline=True)
    room = api_room(Plan.of("cosine", settings=settings), tmp_path / "state", tell=told.append)
    with serving(Config((room,), port=0)) as site:
        until(lambda: told)
        assert "no/such-model" in told[0]
        answer = site.ask("GET", "/readyz")
        assert answer.status == 503
        assert "no/such-model" in answer.json["reason"]
        assert score(site, data=["Hi!", "Hello."]).status == 503


def test_counters_are_what_prometheus_reads(site: Site) -> None:
    score(site, data=["Hi!", "Hello."])
    text = site.ask("GET", "/metrics").body.decode()
    line = re.compile(
        r"(# (HELP|TYPE) [a-z_]+ .+"
        r'|[a-z_]+(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? [0-9.e+-]+)'
    )
    assert all(line.fullmatch(one) for one in text.splitlines())
    assert 'causerie_requests_total{route="/v1/score",method="POST",status="200"}' in text
    buckets = [int(n) for n in re.findall(r"causerie_pass_items_bucket.* (\d+)", text)]
    assert buckets == sorted(buckets)
    assert f"causerie_pass_items_count {buckets[-1]}" in text


def test_tokens_guard_the_api(tmp_path: Path) -> None:
    token = "a token that nobody can guess"
    room = api_room(Plan.of("length"), tmp_path, load=False)
    with serving(Config((room,), port=0, token=token)) as site:
        for method, path in (
            ("POST", "/v1/score"),
            ("GET", "/v1/metrics"),
            ("GET", "/v1/jobs"),
            ("GET", "/metrics"),
            ("GET", "/score/"),
            ("POST", "/v1/jobs"),
            ("GET", "/openapi.json"),
        ):
            assert site.ask(method, path).status == 401, path
        assert site.ask("GET", "/readyz").status == 200
        with pytest.raises(causerie.CauserieError, match="a token is needed"):
            causerie.Client(site.address).metrics()
        assert causerie.Client(site.address, token).score(["Hi!", "Hey."])[0]["length"] == 1
        # a page of another site cannot use the browser of somebody who is in
        headers = {"Authorization": f"Bearer {token}", "Origin": "http://evil.example"}
        assert site.ask("POST", "/v1/score", {"data": ["Hi!", "Hey."]}, headers).status == 403


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize(
    "options", [[], ["--explain", "--speaker", "all"], ["--level", "dialogue"]]
)
def test_score_by_a_server_writes_the_same_rows(
    site: Site, tiny_bert: Path, tmp_path: Path, suffix: str, options: list[str]
) -> None:
    lines = [
        json.dumps({"messages": TALK}),
        json.dumps(OWN),
        "no record",
        json.dumps({"messages": TALK}),
    ]
    if "dialogue" not in options:
        lines.append(json.dumps(ROW))
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(lines))
    local, remote = tmp_path / f"local.{suffix}", tmp_path / f"remote.{suffix}"
    one = run_causerie(
        "score", path, "--metrics", METRICS, "--encoder", tiny_bert, "--out", local, *options
    )
    other = run_causerie(
        "score", path, "--server", site.address, "--metrics", METRICS, "--out", remote, *options
    )
    assert (one.returncode, other.returncode) == (1, 1), other.stderr
    assert remote.read_bytes() == local.read_bytes()
    assert other.stderr.replace("remote.", "local.") == one.stderr


def test_large_batches_are_sent_in_parts(tmp_path: Path) -> None:
    path, out = tmp_path / "talks.jsonl", tmp_path / "out.jsonl"
    talks = [
        {"id": f"d{n}", "turns": [{"speaker": "AB"[i % 2], "text": f"{n} {i}"} for i in range(9)]}
        for n in range(90)
    ]
    path.write_text("\n".join(map(json.dumps, talks)))
    room = api_room(Plan.of("length"), tmp_path / "state", load=False, limit=10)
    with serving(Config((room,), port=0)) as site:
        done = run_causerie("score", path, "--server", site.address, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["dialogue_id"], row["turn"], row["length"]) for row in rows] == [
        (f"d{n}", i, 2.0) for n in range(90) for i in range(1, 9)
    ]


def test_options_that_the_server_decides_are_refused(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(OWN))
    for options in (["--encoder", "x"], ["--set", "bleu.order=2"], ["--scores", tmp_path / "s"]):
        done = run_causerie("score", path, "--server", site.address, *options)
        assert done.returncode == 2
        assert "--server" in done.stderr
    nobody = run_causerie("score", path, "--server", "http://127.0.0.1:9")
    assert nobody.returncode == 4 or "is `causerie serve` running there?" in nobody.stderr
    wrong = run_causerie("score", path, "--server", "somewhere")
    assert "is not the address of a server" in wrong.stderr


def test_dialogues_can_be_sent(site: Site) -> None:
    client = causerie.Client(site.address)
    dialogue = Dialogue.from_texts(["Hi!", "Hello.", "Tea?"], id="d")
    assert [row["turn"] for row in client.score(dialogue)] == [1, 2]
    assert [row["turn"] for row in client.score(dialogue.exchanges()[1], "length")] == [2]
    assert client.compare([dialogue], [dialogue], ["length"])["columns"][0]["mean_a"] == 1
    with pytest.raises(causerie.CauserieError, match="cannot be sent"):
        client.score(object())


def test_threads_end_with_the_server(tmp_path: Path) -> None:
    import threading

    before = set(threading.enumerate())
    with slow_site(tmp_path) as site:
        score(site, data=["Hi!", "one"])
    left = [t for t in set(threading.enumerate()) - before if isinstance(t, Thread)]
    assert not [t.name for t in left if t.name in ("scoring", "jobs", "loading")]
