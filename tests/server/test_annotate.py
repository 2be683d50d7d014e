"""Annotation over HTTP: who may see and do what, and that nothing acknowledged is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings

from annotation.making import PAIRS, event, mark, pairs, project_of, talk, talks
from causerie.annotation.marks import Event
from causerie.annotation.store import Store
from causerie.annotation.tasks import Task
from causerie.server.annotate import annotation_room
from causerie.server.app import Config
from serving import Answer, Site, serving

OWNER = "the token of the owner"


@dataclass(frozen=True)
class Team:
    """A server with a project, and everybody's tokens."""

    site: Site
    store: Store
    project: int
    tokens: dict[str, str]

    def ask(self, who: str | None, method: str, path: str, body: object = None) -> Answer:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return self.site.ask(method, f"/annotate/{path}", body, headers)

    def work(self, who: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(who, "GET", "api/me").json["work"]
        return found

    def send(self, who: str, work: int, *events: Event) -> Answer:
        given = [{"key": e.key, "action": e.action, "body": dict(e.body)} for e in events]
        return self.ask(who, "POST", f"api/work/{work}/events", {"events": given})


def team_of(location: str, items: Any, people: list[str], **options: Any) -> Iterator[Team]:
    store = Store.open(location, create=True)
    number, tokens = project_of(store, items, people, **options)
    other, others = project_of(store, talks(2), ["zoe"], name="other")
    tokens |= {"zoe": others["zoe"], "other lead": others["lead"], "owner": OWNER}
    assert other != number
    with serving(Config((annotation_room(store, number),), port=0, token=OWNER)) as site:
        yield Team(site, store, number, tokens)


@pytest.fixture
def team(location: str) -> Iterator[Team]:
    yield from team_of(location, talks(4), ["ann", "ben"], overlap=0.5)


@pytest.fixture
def judges(location: str) -> Iterator[Team]:
    made = pairs(4, ["secret-system", "other-system"])
    yield from team_of(location, made, ["ann", "ben", "cy"], task=PAIRS, annotators=3, overlap=1.0)


def test_an_annotator_sees_their_own_work_and_nothing_else(team: Team) -> None:
    own, others = ({one["id"] for one in team.work(name)} for name in ("ann", "ben"))
    foreign = {one["id"] for one in team.work("zoe")}
    assert own
    assert others
    assert not own & others
    for number in own:
        assert team.ask("ann", "GET", f"api/work/{number}").status == 200
    for number in others | foreign | {10**9}:
        assert team.ask("ann", "GET", f"api/work/{number}").status == 404
        assert team.send("ann", number, mark(0, 0, 3)).status == 404
    item = next(iter(team.store.snapshot(team.project).items))
    for method, path, body in [
        ("GET", "lead", None),
        ("GET", "item", None),
        ("GET", "api/lead", None),
        ("GET", f"api/lead/items/{item}", None),
        ("POST", f"api/lead/items/{item}/adjudicate", None),
        ("POST", "api/lead/people", {"name": "eve"}),
        ("POST", "api/lead/revoke", {"name": "ben"}),
        ("POST", "api/lead/review", {}),
        ("GET", "api/lead/export/jsonl", None),
        ("GET", "api/lead/export/log", None),
    ]:
        answer = team.ask("ann", method, path, body)
        assert (answer.status, answer.json) == (403, {"error": "you do not have access to this"}), (
            path
        )
        assert team.ask(None, method, path, body).status == 401
    assert team.store.snapshot(team.project).events == {}
    assert len(team.store.snapshot(team.project).people) == 3


def test_a_lead_sees_one_project(team: Team) -> None:
    here = team.ask("lead", "GET", "api/lead").json
    assert [one["name"] for one in here["people"]] == ["ann", "ben", "lead"]
    there = team.ask("other lead", "GET", "api/lead").json
    assert [one["name"] for one in there["people"]] == ["zoe", "lead"]
    item = next(iter(team.store.snapshot(team.project).items))
    assert team.ask("lead", "GET", f"api/lead/items/{item}").status == 200
    assert team.ask("other lead", "GET", f"api/lead/items/{item}").status == 404
    assert team.ask("other lead", "POST", f"api/lead/items/{item}/adjudicate").status == 422
    assert team.ask("owner", "GET", "api/lead").json == here
    assert "talk0" in team.ask("lead", "GET", "api/lead/export/jsonl").body.decode()


def test_what_is_saved_is_saved_once(team: Team) -> None:
    work = team.work("ann")[0]["id"]
    first, again = mark(0, 0, 11), mark(2, 0, 8)
    for _ in range(3):
        view = team.send("ann", work, first).json
    view = team.send("ann", work, first, again, event("finish")).json
    assert [one["action"] for one in view["events"]] == ["mark", "mark", "finish"]
    assert view["finished"] is True
    refused = team.send("ann", work, mark(1, 0, 3))
    assert refused.status == 422
    assert refused.json == {"error": "mark: the item is finished: reopen it first"}
    used = team.send("ann", work, mark(1, 0, 3, key=first.key))
    assert used.status == 422
    assert "used for something else" in used.json["error"]
    assert [one["finished"] for one in team.work("ann") if one["id"] == work] == [True]


@pytest.mark.parametrize(
    "body",
    [
        {"events": [{"key": "short", "action": "open", "body": {}}]},
        {"events": [{"key": "x" * 32, "action": "drop table", "body": {}}]},
        {"events": [{"key": "x" * 32, "action": "mark", "body": []}]},
        {"events": [{"key": "x" * 32, "action": "mark", "body": {"turn": "0"}}]},
        {"events": [{"key": "\ud800" * 32, "action": "open"}]},
        {"events": [{"key": "x" * 32, "action": "undo", "body": {"event": {}}}]},
        {"events": [{"key": "x" * 32, "action": "unmark", "body": {"mark": {}}}]},
        {"events": [{"key": f"{n:032}", "action": "open"} for n in range(201)]},
        {"events": [{"key": "x" * 32, "action": "open", "body": {"x": "x" * 100_001}}]},
        {"events": 3},
        [],
    ],
)
def test_nonsense_is_refused_in_a_sentence(team: Team, body: object) -> None:
    work = team.work("ann")[0]["id"]
    answer = team.ask("ann", "POST", f"api/work/{work}/events", body)
    assert answer.status == 422
    assert answer.json["error"]
    assert team.store.snapshot(team.project).events == {}


@pytest.mark.slow
def test_no_request_makes_the_server_fail(team: Team) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    headers = {
        name: {"Authorization": f"Bearer {team.tokens[name]}"} for name in ("lead", "ann", "owner")
    }
    schema = schemathesis.openapi.from_url(
        f"{team.site.address}/openapi.json", headers=headers["owner"]
    )
    operations = [found.ok() for found in schema.get_all_operations()]
    ours = [one for one in operations if one.path.startswith("/annotate/")]
    assert len(ours) == 10
    failed = []
    for operation in ours:

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            for given_ in headers.values():
                answer = case.call(headers=given_)
                if answer.status_code >= 500:
                    failed.append((case.method, case.path, case.body))

        holds()
    assert failed == []
    for bad in ("a\0b", "\ud800", " "):
        answer = team.ask("lead", "POST", "api/lead/people", {"name": bad})
        assert answer.status == 422, bad


def test_links_end_at_once_and_are_shown_once(team: Team) -> None:
    team.send("ann", team.work("ann")[0]["id"], event("none"), event("finish"))
    made = team.ask("lead", "POST", "api/lead/people", {"name": " cy "}).json
    team.tokens["cy"] = made["token"]
    assert team.ask("cy", "GET", "api/me").json["name"] == "cy"
    ended = team.ask("lead", "POST", "api/lead/revoke", {"name": "ann"})
    assert ended.json["assigned"] > 0  # ann's unfinished items are assigned to others
    assert team.ask("ann", "GET", "api/me").status == 401
    assert team.tokens["cy"].encode() not in team.ask("lead", "GET", "api/lead").body
    renewed = team.ask("lead", "POST", "api/lead/people", {"name": "cy"}).json
    assert team.ask("cy", "GET", "api/me").status == 401
    team.tokens["cy"] = renewed["token"]
    assert team.ask("cy", "GET", "api/me").status == 200
    assert team.ask("lead", "POST", "api/lead/people", {"name": "lead"}).status == 422


def test_systems_are_hidden_from_those_who_judge(judges: Team) -> None:
    shown: set[tuple[str, ...]] = set()
    for name in ("ann", "ben", "cy"):
        for one in judges.work(name):
            answer = judges.ask(name, "GET", f"api/work/{one['id']}")
            assert b"system" not in answer.body.replace(b"-system says", b"")
            shown.add(tuple(answer.json["responses"]))
    assert len(shown) == 8  # each of four pairs, both ways round


def test_votes_are_kept_by_system_and_not_by_side(judges: Team) -> None:
    for name in ("ann", "ben", "cy"):
        for one in judges.work(name):
            view = judges.ask(name, "GET", f"api/work/{one['id']}").json
            even = view["turns"][0]["text"] in ("Question 0?", "Question 2?")
            side = "A" if view["responses"][0].startswith("secret") is even else "B"
            votes = [event("answer", question=q.name, value=side) for q in PAIRS.questions]
            assert judges.send(name, one["id"], *votes, event("finish")).status == 200
    lines = judges.ask("lead", "GET", "api/lead/export/judged").body.decode().splitlines()
    for record in map(json.loads, lines):
        even = record["context"][0]["text"] in ("Question 0?", "Question 2?")
        expected = "A" if (record["a"]["system"] == "secret-system") is even else "B"
        assert [votes["overall"] for votes in record["judgements"]] == [expected] * 3
    measured = judges.ask("lead", "GET", "api/lead").json["agreement"]["measures"]["overall"]
    assert measured["Krippendorff's alpha"]["value"] == 1.0


def test_right_answers_come_after_practice(location: str) -> None:
    gold = {"gold": [mark(0, 0, 12)]}
    items = [talk("gold", "Hello there.", "Hi."), *talks(1)]
    for team in team_of(location, items, ["ann"], gold=gold):
        work = team.work("ann")[0]
        assert work["round"] == "dry"
        assert "right" not in team.ask("ann", "GET", f"api/work/{work['id']}").json
        view = team.send("ann", work["id"], event("none"), event("finish")).json
        assert [one["stop"] for one in view["right"]["marks"]] == [12]
        assert view["closed"]


def test_review_and_adjudication_by_http(team: Team) -> None:
    for name, place in (("ann", 0), ("ben", 2)):
        for one in team.work(name):
            team.send(name, one["id"], mark(place, 0, 8), event("finish"))
    listed = team.ask("lead", "GET", "api/lead").json
    assert len(listed["disagreements"]) == 2
    item = listed["disagreements"][0]["item"]
    work = team.ask("lead", "POST", f"api/lead/items/{item}/adjudicate").json["work"]
    assert team.ask("lead", "POST", f"api/lead/items/{item}/adjudicate").json["work"] == work
    view = team.ask("lead", "GET", f"api/work/{work}").json
    assert [one["name"] for one in view["others"]] == ["Annotator 1", "Annotator 2"]
    assert sorted(mark["turn"] for one in view["others"] for mark in one["marks"]) == [0, 2]
    assert team.send("lead", work, mark(1, 0, 3), event("finish")).status == 200
    side = team.ask("lead", "GET", f"api/lead/items/{item}").json
    assert [one["counts"] for one in side["works"]] == [False, False, True]
    assigned = team.ask("lead", "POST", "api/lead/review", {"names": ["ann", "ben"]}).json
    assert assigned == {"assigned": 2}  # the two that one alone has annotated
    reviews = [one for n in ("ann", "ben") for one in team.work(n) if one["round"] == "review"]
    assert len(reviews) == 2
    assert team.ask("lead", "POST", "api/lead/review", {"names": ["eve"]}).status == 422


def test_other_tasks_have_pages_of_their_own(location: str) -> None:
    task = Task.of("replies", ["wit"], 3)
    items = [talk("t", "One.", "Two.", "Three.")]
    for team in team_of(location, items, ["ann"], task=task):
        me = team.ask("ann", "GET", "api/me").json
        assert me["task"]["questions"][0]["scale"] == 3
        assert me["guideline"]["text"]
        assert team.ask("lead", "POST", "api/lead/review", {}).status == 422


def serve(location: str) -> tuple[subprocess.Popen[str], int]:
    """`causerie annotate serve` in a process of its own, and its port."""
    program = "from causerie.cli import main; main()"
    words = ["annotate", "serve", location, "--project", "p", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    link = process.stdout.readline().strip()
    assert "/enter#" in link
    return process, int(urlsplit(link).port or 0)


def test_killed_and_started_again_it_has_every_mark_that_it_acknowledged(location: str) -> None:
    import http.client

    store = Store.open(location, create=True)
    people = [f"p{n}" for n in range(4)]
    number, tokens = project_of(store, talks(8), people, annotators=4, overlap=1.0)
    by_person: dict[int, list[int]] = {}
    for one in store.snapshot(number).assignments.values():
        by_person.setdefault(one.person, []).append(one.id)
    store.close()
    process, port = serve(location)
    acknowledged: list[str] = []
    enough = threading.Event()

    def annotate(token: str, works: list[int]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            for turn in range(100_000):
                made = mark(turn % 3, 0, 1 + turn % 5)
                body = {"events": [{"key": made.key, "action": "mark", "body": dict(made.body)}]}
                path = f"/annotate/api/work/{works[turn % len(works)]}/events"
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                response.read()
                if response.status == 200:
                    acknowledged.append(made.key)
                if len(acknowledged) >= 60:
                    enough.set()
        except (OSError, http.client.HTTPException):
            return

    threads = []
    for name in people:
        person = int(tokens[name].partition("-")[0])
        threads.append(threading.Thread(target=annotate, args=[tokens[name], by_person[person]]))
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    process.send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join(60)
    process.wait()
    assert process.stdout
    process.stdout.close()
    again, port = serve(location)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for name in people:
            headers = {"Authorization": f"Bearer {tokens[name]}"}
            connection.request("GET", "/annotate/api/me", headers=headers)
            assert connection.getresponse().read()
        connection.close()
    finally:
        again.send_signal(signal.SIGINT)
        again.wait(30)
        assert again.stdout
        again.stdout.close()
    store = Store.open(location)
    kept = [e.key for events in store.snapshot(number).events.values() for e in events]
    store.close()
    assert len(acknowledged) >= 60
    assert len(set(kept)) == len(kept)
    assert set(acknowledged) <= set(kept)


def test_fifty_annotators_at_once_lose_and_double_nothing(location: str) -> None:
    """The short form of benchmarks/annotation_load.py."""
    people = [f"p{n}" for n in range(50)]
    store = Store.open(location, create=True)
    number, tokens = project_of(store, talks(50), people)
    with serving(Config((annotation_room(store, number),), port=0, token=OWNER)) as site:
        team = Team(site, store, number, tokens)
        sent: list[str] = []
        failed: list[str] = []

        def annotate(name: str) -> None:
            for one in team.work(name):
                events = [mark(turn, 0, 3) for turn in range(2)]
                for made in events:
                    for _ in range(2):
                        answer = team.send(name, one["id"], made)
                        if answer.status != 200:
                            failed.append(answer.body.decode())
                sent.extend(made.key for made in events)

        threads = [threading.Thread(target=annotate, args=[name]) for name in people]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - start < 120
        assert failed == []
        events = store.snapshot(number).events.values()
        kept = sorted(event.key for found in events for event in found)
        assert kept == sorted(sent)
