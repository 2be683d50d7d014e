"""Exit statuses (docs/exit-status.md) mean the same in every command."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from causerie.scoring import ScoreStore
from terminal import run_causerie

TURNS = [{"speaker": s, "text": t} for s, t in (("A", "hi there"), ("B", "oh, hello you"))]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a valid input, one with a bad record, and files of other kinds."""
    lines = [json.dumps({"id": f"d{n}", "turns": TURNS * 2}) for n in range(8)]
    judged = [
        json.dumps(
            {
                "id": f"i{n}",
                "context": TURNS[:1],
                "response": {"speaker": "B", "text": "word " * (1 + n % 5)},
                "ratings": {"overall": [n % 5, (n + 1) % 4]},
            }
        )
        for n in range(12)
    ]
    (tmp_path / "judged").mkdir()
    for name, text in {
        "good.jsonl": lines,
        "bad.jsonl": [*lines, "{"],
        "judged/good.jsonl": judged,
        "judged/bad.jsonl": [*judged, "{"],
    }.items():
        (tmp_path / name).write_text("\n".join(text) + "\n")
    (tmp_path / "junk").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "folder").mkdir()
    return tmp_path


def status(place: Path, command: str) -> int:
    """Return the exit status of a command; failures must be reported in one sentence."""
    words = [place / word[1:] if word.startswith("@") else word for word in command.split()]
    done = run_causerie(*words)
    assert "Traceback" not in done.stderr
    if done.returncode in (2, 4) and "Usage: " not in done.stderr:
        assert done.stderr.strip().splitlines()[-1].startswith("causerie: "), done.stderr
    return done.returncode


SKIPPING = [
    "score @{} -m length",
    "compare @good.jsonl @{} -m length --scores @scores",
    "bench run --data @judged --sets {name} -m length --out @bench --scores @scores",
    "bench rank --data @{} --metrics length --scores @scores",
    "annotate init @{name}.db @{} --people ann,ben",
]


@pytest.mark.parametrize("command", SKIPPING, ids=lambda one: " ".join(one.split()[:2]))
def test_a_record_that_cannot_be_read_is_1(place: Path, command: str) -> None:
    for name, expected in (("good", 0), ("bad", 1)):
        assert status(place, command.format(f"{name}.jsonl", name=name)) == expected


USELESS = [
    *("score @missing -m length", "score @junk -m length", "score @folder -m length"),
    *("score @good.jsonl -m nothing", "score @good.jsonl", "score", "nothing"),
    "score @good.jsonl -m length --scores @folder",
    "score @good.jsonl -m length --scores @junk",
    "compare @good.jsonl @missing -m length",
    "compare @good.jsonl @good.jsonl -m length --scores @junk",
    *("cache info --scores @junk", "cache clear --scores @folder", "metrics nothing"),
    *("models verify --models-dir @folder", "models pull nothing", "models path nothing"),
    "models pull all-MiniLM-L6-v2 --models-dir @store --from @junk",
    *("graph info @folder", "graph path dog zzzz", "graph build --triples @junk --out @graph"),
    *("bench run --data @missing -m length --out @bench", "bench probe --data @folder -m length"),
    *("bench rank --data @junk --metrics length", "bench convert nothing @junk"),
    *(
        "train density --data @missing --out @artifact",
        "train density --data @junk --out @artifact",
    ),
    *("ratings trend @missing", "ratings evaluate @junk", "ratings fit @junk --out @fitted"),
    *("annotate status @missing", "annotate status @junk", "annotate invite @folder ann"),
    "annotate init @new.db @junk --people ann",
    "serve @missing --port 0",
]


@pytest.mark.parametrize("command", USELESS)
def test_what_the_user_can_mend_is_2(
    place: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    extra = " --offline --models-dir @folder" if command == "score @good.jsonl" else ""
    assert status(place, command + extra) == 2


@pytest.mark.parametrize("command", ["score @good.jsonl", "compare @good.jsonl @good.jsonl"])
def test_a_gate_that_says_no_is_3(place: Path, command: str) -> None:
    gate = " -m length --scores @scores --fail-if mean(length)>0"
    assert status(place, command + gate) == 3


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def test_a_store_that_somebody_else_has_is_4(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causerie.scoring.store.WAIT", 0.01)
    monkeypatch.setattr("causerie.annotation.database._BUSY", 0.01)
    ScoreStore(place / "scores").close()
    assert status(place, "annotate init @team.db @good.jsonl --people ann,ben") == 0
    assert status(place, "annotate export @team.db --out @done.jsonl") == 0
    with locked(place / "scores"), locked(place / "team.db"):
        for command in (
            *("cache clear --scores @scores", "score @good.jsonl -m length --scores @scores"),
            "compare @good.jsonl @good.jsonl -m length --scores @scores",
            "bench rank --data @good.jsonl --metrics length --scores @scores",
            *("annotate invite @team.db cy", "annotate import @team.db @done.jsonl"),
        ):
            assert status(place, command) == 4, command


def test_a_damaged_project_is_4(place: Path) -> None:
    assert status(place, "annotate init @team.db @good.jsonl --people ann,ben") == 0
    path = place / "team.db"
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)
    assert status(place, "annotate status @team.db") == 4
