"""Exit statuses are the same for every command, as listed in docs/exit-status.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from causerie.cli import app
from terminal import run_causerie

NO = "/no/such/place"
HOPELESS: dict[str, list[str]] = {
    "score": [f"{NO}.jsonl"],
    "compare": [f"{NO}.jsonl", f"{NO}.jsonl"],
    "metrics": ["nonesuch"],
    "train": ["density", "--data", f"{NO}.jsonl", "--out", "OUT"],
    "models list": ["--nonesuch"],
    "models pull": ["nonesuch"],
    "models verify": ["nonesuch"],
    "models path": ["nonesuch"],
    "cache info": ["--scores", "TEXT"],
    "cache clear": ["--scores", "TEXT"],
    "graph build": ["--triples", f"{NO}.jsonl", "--out", "OUT"],
    "graph info": [NO],
    "graph path": ["dog", "cat", "--graph", NO],
    "graph neighbours": ["dog", "--graph", NO],
    "bench sets": ["--nonesuch"],
    "bench convert": ["nonesuch", f"{NO}.json"],
    "bench run": ["--data", NO, "--sets", "nonesuch"],
    "bench reproduce": ["nonesuch", "--data", NO],
    "bench probe": ["--data", NO],
    "bench rank": ["--data", f"{NO}.jsonl"],
    "bench causes": ["--annotations", f"{NO}.jsonl"],
    "ratings fit": [f"{NO}.jsonl", "--out", "OUT"],
    "ratings extend": [f"{NO}.jsonl", "--model", NO, "--treatments", "insult", "--out", "OUT"],
    "ratings predict": [f"{NO}.jsonl"],
    "ratings evaluate": [f"{NO}.jsonl"],
    "ratings effect": [f"{NO}.jsonl"],
    "ratings trend": [f"{NO}.jsonl"],
    "ratings agreement": [f"{NO}.jsonl", "--other", "expert"],
    "ratings watch": ["--model", NO],
    "serve": [f"{NO}.parquet"],
    "annotate init": [f"{NO}.project", f"{NO}.jsonl", "--people", "ann"],
    "annotate serve": [f"{NO}.project"],
    "annotate status": [f"{NO}.project"],
    "annotate agreement": [f"{NO}.project"],
    "annotate export": [f"{NO}.project"],
    "annotate import": [f"{NO}.project", f"{NO}.jsonl"],
    "annotate invite": [f"{NO}.project", "ann"],
    "annotate revoke": [f"{NO}.project", "ann"],
    "annotate review": [f"{NO}.project"],
    "annotate select": [f"{NO}.project"],
}
"""Every command with impossible arguments."""


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[str]:
    group = group or typer.main.get_command(app)
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))
    if not hasattr(group, "commands"):
        yield " ".join(path)


@pytest.mark.parametrize("command", sorted(commands()))
def test_what_cannot_be_done_is_status_2_and_one_sentence(command: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    places = {"OUT": str(tmp_path / "out"), "TEXT": str(tmp_path / "text")}
    words = [places.get(word, word) for word in HOPELESS[command]]
    done = run_causerie(*command.split(), *words)
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_no_command_is_no_command() -> None:
    assert run_causerie("nonesuch").returncode == 2


GOOD = {
    "turns": [
        {"speaker": "A", "text": "Do you like music?", "role": "user"},
        {"speaker": "B", "text": "I play the guitar.", "role": "system"},
        {"speaker": "A", "text": "Which songs?", "role": "user"},
        {"speaker": "B", "text": "All of them.", "role": "system"},
    ],
}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("score", "LOG", "-m", "length"),
        ("compare", "LOG", "LOG", "-m", "length", "--scores", "SCORES"),
        ("ratings", "agreement", "LOG", "--other", "expert", "--scores", "SCORES"),
        ("bench", "rank", "--data", "LOG", "--metrics", "length", "--scores", "SCORES"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_skipped_records_are_status_1(words: tuple[str, ...], broken: bool, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    records = [
        json.dumps(GOOD | {"id": str(n), "rating": n % 5 + 1, "expert": n * n % 5 + 1})
        for n in range(40)
    ]
    log.write_text("\n".join([*records, "{"] if broken else records) + "\n")
    places = {"LOG": str(log), "SCORES": str(tmp_path / "scores.sqlite")}
    done = run_causerie(*(places.get(word, word) for word in words))
    assert done.returncode == int(broken), done.stderr
