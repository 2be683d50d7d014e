"""`causerie annotate` from the command line: from files to a project and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotation.making import do, event, mark
from causerie.annotation.store import Store
from terminal import run_causerie


def conversations(path: Path, count: int) -> Path:
    records = [
        {
            "id": f"talk{n}",
            "turns": [
                {"speaker": "AB"[turn % 2], "text": f"Turn {turn} of talk {n}."}
                for turn in range(4)
            ],
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def test_init_status_agreement_export(tmp_path: Path) -> None:
    talks = conversations(tmp_path / "talks.jsonl", 5)
    gold = {
        "id": "right",
        "history": [{"speaker": "A", "text": "It rains."}],
        "response": {"speaker": "B", "text": "Take my coat."},
        "cause_turns": [0],
        "cause_spans": ["It rains."],
    }
    (tmp_path / "gold.jsonl").write_text(json.dumps(gold) + "\n")
    database = tmp_path / "study.db"
    made = run_causerie(
        *("annotate", "init", database, talks, "--people", "ann, ben", "--sample", "2"),
        *("--overlap", "1", "--gold", tmp_path / "gold.jsonl", "--address", "http://here:1/"),
    )
    assert made.returncode == 0, made.stderr
    assert "project study: 6 items, 1 to practise, 14 assignments" in made.stderr
    links = dict(line.split("\t") for line in made.stdout.splitlines())
    assert list(links) == ["lead", "ann", "ben"]
    store = Store.open(database)
    number = store.project("study")
    for name, link in links.items():
        address, _, token = link.partition("#")
        assert address == "http://here:1/enter"
        found = store.who(token)
        assert found is not None
        assert found[1].name == name
    silent = run_causerie("annotate", "agreement", database)
    assert silent.returncode == 2
    assert "finished by two annotators" in silent.stderr
    now = store.snapshot(number)
    for one in now.assignments.values():
        name, item = now.people[one.person].name, now.items[one.item].item.name
        do(store, number, name, item, one.round, mark(0, 0, 5))
    store.close()
    status = run_causerie("annotate", "status", database)
    assert "| ann" in status.stdout
    assert "1 of 1 | 6 of 6" in " ".join(status.stdout.split())
    assert "6 of 6 items done, 6 settled" in status.stdout
    agreed = run_causerie("annotate", "agreement", database, "--out", tmp_path / "agreement.csv")
    assert "ann, ben" in agreed.stdout
    assert (tmp_path / "agreement.csv").read_text().count("1.00") >= 3
    exported = run_causerie("annotate", "export", database)
    records = [json.loads(line) for line in exported.stdout.splitlines()]
    assert len(records) == 6
    assert all(one["cause_turns"] == [0] and one["settled"] for one in records)
    brat = run_causerie("annotate", "export", database, "--format", "brat", "-o", tmp_path / "brat")
    assert "6 items" in brat.stderr
    assert len(list((tmp_path / "brat").iterdir())) == 12
    wrong = run_causerie("annotate", "export", database, "--format", "judged")
    assert wrong.returncode == 2
    assert "judged cannot hold causes" in wrong.stderr


def test_import_says_what_it_could_not_place(tmp_path: Path) -> None:
    talks = conversations(tmp_path / "talks.jsonl", 1)
    database = tmp_path / "study.db"
    assert run_causerie("annotate", "init", database, talks, "--people", "ann").returncode == 0
    record = {
        "HITId": "one",
        "history": ["A: Hello.", ""],
        "response": "B: Hi.",
        "entities": ["Hello.", "the moon"],
    }
    file = tmp_path / "published.json"
    file.write_text(json.dumps([record, {"HITId": "two", "entities": []}]))
    done = run_causerie("annotate", "import", database, file)
    assert done.returncode == 1
    assert "1 new items, 1 annotations" in done.stderr
    assert "one: no turn contains 'the moon'" in done.stderr
    assert "history is missing" in done.stderr
    status = run_causerie("annotate", "status", database)
    assert "imported (no link)" in status.stdout


def test_people_come_and_go_and_review(tmp_path: Path) -> None:
    talks = conversations(tmp_path / "talks.jsonl", 2)
    database = tmp_path / "study.db"
    made = run_causerie("annotate", "init", database, talks, "--people", "ann", "--overlap", "0")
    assert made.returncode == 0
    again = run_causerie("annotate", "init", database, talks, "--people", "ann")
    assert again.returncode == 2
    assert "there is already a project 'study'" in again.stderr
    store = Store.open(database)
    number = store.project()
    for one in store.snapshot(number).items.values():
        do(store, number, "ann", one.item.name, "first", event("none"))
    store.close()
    invited = run_causerie("annotate", "invite", database, "ben", "lead")
    assert [line.split("\t")[0] for line in invited.stdout.splitlines()] == ["ben", "lead"]
    reviewed = run_causerie("annotate", "review", database)
    assert "6 items were given to reviewers" in reviewed.stderr
    assert run_causerie("annotate", "revoke", database, "ben").returncode == 0
    unknown = run_causerie("annotate", "revoke", database, "eve")
    assert unknown.returncode == 2
    assert "nobody named 'eve'" in unknown.stderr


def test_judged_pairs_from_two_systems(tmp_path: Path) -> None:
    records = [
        {
            "id": f"c{n}",
            "context": [{"speaker": "A", "text": f"Question {n}?"}],
            "response": {"speaker": "B", "text": f"{system} says so."},
            "system": system,
        }
        for n in range(3)
        for system in ("x", "y", "z")
    ]
    file = tmp_path / "responses.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    words = ["annotate", "init", tmp_path / "p.db", file, "--task", "pairs"]
    made = run_causerie(*words, "--people", "a,b,c")
    assert "project p: 9 items, 0 to practise, 27 assignments" in made.stderr


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--people", "ann,ann"], "names of annotators must be different"),
        (["--people", "lead"], "names of annotators must be different"),
        (["--people", "ann", "--task", "odd"], "'odd' is not a kind of task"),
        (["--people", "ann", "--task", "labels"], "name the labels"),
        (["--people", "ann", "--task", "pairs"], "no two systems"),
        (["--people", "ann", "--speaker", "nobody"], "check --task and --speaker"),
        (["--people", "ann", "--task", "replies", "--scale", "1"], "2 to 11 points"),
    ],
)
def test_what_cannot_be_made_says_why(tmp_path: Path, more: list[str], reason: str) -> None:
    talks = conversations(tmp_path / "talks.jsonl", 2)
    done = run_causerie("annotate", "init", tmp_path / "p.db", talks, *more)
    assert done.returncode == 2
    assert reason in " ".join(done.stderr.split())


def test_what_the_metric_is_unsure_of_comes_first(tmp_path: Path) -> None:
    from causerie.annotation.selection import uncertainty
    from causerie.metrics.causalscore.formula import CausalGraph

    sure = CausalGraph((0.999, 0.001), {})
    unsure = CausalGraph((0.5, 0.6), {(0, 1): 0.5, (1, 0): 0.4})
    assert uncertainty(CausalGraph((0.5,), {})) == 1.0
    assert uncertainty(CausalGraph((0.0, 1.0), {})) == 0.0
    assert uncertainty(sure) < 0.02 < 0.9 < uncertainty(unsure)


@pytest.mark.slow
@pytest.mark.default_models
def test_select_reorders_what_nobody_has_begun(tmp_path: Path) -> None:
    talks = conversations(tmp_path / "talks.jsonl", 3)
    database = tmp_path / "study.db"
    run_causerie("annotate", "init", database, talks, "--people", "ann", "--overlap", "0")
    done = run_causerie("annotate", "select", database, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "9 items that nobody has started are in a new order" in done.stderr
    store = Store.open(database)
    now = store.snapshot(store.project())
    store.close()
    priorities = [one.priority for one in now.items.values()]
    assert len(set(priorities)) > 1
    (ann,) = [p.id for p in now.people.values() if p.name == "ann"]
    order = [now.items[one.item].priority for one in now.of_person(ann)]
    assert order == sorted(order, reverse=True)
