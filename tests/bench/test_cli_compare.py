"""`causerie compare` as a user and as a gate in CI meet it: what is shown, written, returned."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from causerie.bench import scores
from causerie.cli.compare import compare
from causerie.errors import CauserieError

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    app = typer.Typer()
    app.command()(compare)
    monkeypatch.setattr(scores, "default_path", lambda: tmp_path / "scores.sqlite")
    monkeypatch.chdir(tmp_path)

    def write(name: str, replies: list[str], bad: bool = False) -> None:
        lines = [json.dumps({"context": [f"c{i}"], "response": r}) for i, r in enumerate(replies)]
        Path(name).write_text("\n".join(lines + ["{bad"] * bad) + "\n", encoding="utf-8")

    # words of b minus words of a: 1, 2, 1, 2, ...: 1.5 on average
    write("a.jsonl", ["x"] * 12)
    write("b.jsonl", ["x x" + " x" * (i % 2) for i in range(12)])
    write("bad.jsonl", ["x x" + " x" * (i % 2) for i in range(12)], bad=True)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--metrics", "length"])

    return invoke


def test_a_comparison(run: Run) -> None:
    result = run("a.jsonl", "b.jsonl", "--out", "c.json")
    assert result.exit_code == 0
    assert "paired: 12 pairs" in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.startswith("length ↑"))
    assert line.split()[2:5] == ["1", "2.5", "+1.5"]
    assert line.split()[-1] == "100.0%"
    written = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert written["columns"][0]["difference"]["value"] == 1.5
    assert written["fail_if"] == []
    assert not list(Path().glob("*.tmp"))


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--fail-if", "length > 1.4"], 3),
        (["--fail-if", "length > 1.6"], 0),
        (["--fail-if", "length < 1.6"], 3),
        (["--fail-if", "length < 0", "--fail-if", "length > 1"], 3),
        (["--fail-if", "length > 1.4", "--significant"], 0),
        (["--fail-if", "length > 0.9", "--significant"], 3),
    ],
)
def test_the_gate(run: Run, options: list[str], status: int) -> None:
    result = run("a.jsonl", "b.jsonl", *options)
    assert result.exit_code == status
    assert ("failed: length" in result.stderr) == (status == 3)


def test_a_gate_that_fires_says_which(run: Run) -> None:
    result = run("a.jsonl", "b.jsonl", "--fail-if", "length < 0", "--fail-if", "length > 1")
    assert "failed: length > 1" in result.stderr
    assert "failed: length < 0" not in result.stderr


def test_skipped_records_are_status_1_unless_the_gate_fires(run: Run) -> None:
    result = run("a.jsonl", "bad.jsonl")
    assert result.exit_code == 1
    assert "skipped bad.jsonl:13: " in result.stderr
    assert "1 of 13 records skipped" in result.stdout
    assert run("a.jsonl", "bad.jsonl", "--fail-if", "length > 0").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.jsonl", "b.jsonl", "--fail-if", "length"], "cannot be read"),
        (["a.jsonl", "b.jsonl", "--fail-if", "bleu < 0"], "is not compared"),
        (["-", "-"], "standard input can be only one"),
        (["a.jsonl", "none.jsonl"], r"none\.jsonl"),
        (["a.jsonl", "b.jsonl", "--speaker", "nobody"], "has no response to compare"),
        (["a.jsonl", "b.jsonl", "--out", "a.jsonl/out.json"], "cannot be written"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, CauserieError)
    with pytest.raises(CauserieError, match=message):
        raise result.exception


def test_a_gate_that_cannot_be_decided_does_not_pass(run: Run, tmp_path: Path) -> None:
    record: dict[str, Any] = {"context": ["c"], "response": "x"}
    for name in ("one.jsonl", "other.jsonl"):
        (tmp_path / name).write_text(json.dumps(record) + "\n", encoding="utf-8")
    gate = ("one.jsonl", "other.jsonl", "--fail-if", "length < -1")
    undecided = run(*gate)
    assert undecided.exit_code == 0
    assert "length: no interval: an interval takes at least two" in undecided.stdout
    result = run(*gate, "--significant")
    assert isinstance(result.exception, CauserieError)
    assert "cannot be decided" in str(result.exception)


def test_text_of_others_does_not_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    odd = "\x1b[31m[red]x"
    for name, words in (("odd.jsonl", 1), ("odder.jsonl", 4)):
        record = {"id": odd, "context": [odd], "response": f"{odd} x" * words, "reference": "x"}
        (tmp_path / name).write_text(json.dumps(record) + "\n", encoding="utf-8")
    app = typer.Typer()
    app.command()(compare)
    result = CliRunner().invoke(app, ["odd.jsonl", "odder.jsonl", "--metrics", "rouge"])
    assert result.exit_code == 0
    assert "differ most by rouge" in result.stdout
    assert result.stdout.count("[red]") >= 4
    assert "\x1b" not in result.stdout


def test_the_command_line_stays_light() -> None:
    heavy = ("numpy", "scipy", "torch", "transformers", "pyarrow")
    code = f"import sys, causerie.cli.compare; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
