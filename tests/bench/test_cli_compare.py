"""`causerie compare` as a user and as a gate in CI meet it: what is shown, written, returned."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from causerie.cli.compare import compare
from causerie.errors import CauserieError
from causerie.scoring import store
from terminal import run_causerie
from tiny import CORPUS

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    app = typer.Typer()
    app.command()(compare)
    monkeypatch.setattr(store, "default_path", lambda: tmp_path / "scores.sqlite")
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
    line = next(line for line in result.stdout.splitlines() if line.startswith("length "))
    assert line.split()[1:4] == ["1", "2.5", "+1.5"]
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
    assert ("failed: difference(length)" in result.stderr) == (status == 3)


def test_a_gate_that_fires_says_which(run: Run) -> None:
    result = run("a.jsonl", "b.jsonl", "--fail-if", "length < 0", "--fail-if", "length > 1")
    assert "failed: difference(length) > 1 holds: it is 1.5" in result.stderr
    assert "length) < 0" not in result.stderr


def test_skipped_records_are_status_1_unless_the_gate_fires(run: Run) -> None:
    result = run("a.jsonl", "bad.jsonl")
    assert result.exit_code == 1
    assert "skipped bad.jsonl:13: " in result.stderr
    assert "1 of 13 records skipped" in result.stdout
    assert run("a.jsonl", "bad.jsonl", "--fail-if", "length > 0").exit_code == 3


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("mean(length) < 2.6", 3),
        ("mean(length) < 2.4", 1),
        ("skipped > 7%", 3),
        ("skipped > 8%", 1),
        ("unscored(length) > 0%", 1),
    ],
)
def test_gates_on_the_new_file_alone(run: Run, condition: str, status: int) -> None:
    assert run("a.jsonl", "bad.jsonl", "--fail-if", condition).exit_code == status


def test_verdicts_as_junit(run: Run) -> None:
    conditions = ("--fail-if", "length > 1", "--fail-if", "mean(length) < 1")
    assert run("a.jsonl", "b.jsonl", *conditions, "--junit", "gate.xml").exit_code == 3
    suite = ElementTree.parse("gate.xml").getroot()
    assert suite.attrib["name"] == "causerie compare a.jsonl b.jsonl"
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")


@pytest.mark.parametrize("suffix", ["md", "tex", "csv"])
def test_the_table_by_suffix(run: Run, suffix: str) -> None:
    assert run("a.jsonl", "b.jsonl", "--out", f"c.{suffix}").exit_code == 0
    text = Path(f"c.{suffix}").read_text(encoding="utf-8")
    assert "length" in text
    assert "1.5" in text
    assert ("| ---" in text) == (suffix == "md")


def test_a_silent_bot_does_not_pass(tmp_path: Path, tiny_bert: Path) -> None:
    """Half of 36 dialogues lose their replies: the gate once said +0 and p 1."""

    def write(name: str, silent: int) -> Path:
        lines = []
        for i in range(36):
            reply = "" if i < silent else CORPUS[i % len(CORPUS)]
            messages = [
                {"role": "user", "content": f"Tell me about {CORPUS[(i + 3) % len(CORPUS)]}"},
                {"role": "assistant", "content": reply},
                {"role": "user", "content": f"And number {i}?"},
                {"role": "assistant", "content": reply},
            ]
            lines.append(json.dumps({"id": f"d{i}", "messages": messages}))
        path = tmp_path / name
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    old, new, same = write("old.jsonl", 0), write("new.jsonl", 18), write("same.jsonl", 0)
    gate = ("--metrics", "cosine", "--fail-if", "cosine < -0.02", "--significant")
    more = ("--encoder", tiny_bert, "--scores", tmp_path / "scores.sqlite")
    done = run_causerie("compare", old, new, *gate, *more)
    assert done.returncode == 3, done.stderr
    assert "72 responses in 36 dialogues or contexts, 36 of them empty" in done.stdout
    assert "paired: 72 pairs" in done.stdout
    assert run_causerie("compare", old, same, *gate, *more).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.jsonl", "b.jsonl", "--fail-if", "length"], "cannot be read"),
        (["a.jsonl", "b.jsonl", "--fail-if", "bleu < 0"], "is not scored"),
        (["-", "-"], "only one of the two inputs can be standard input"),
        (["a.jsonl", "none.jsonl"], r"none\.jsonl"),
        (["a.jsonl", "b.jsonl", "--speaker", "nobody"], "has no response to compare"),
        (["a.jsonl", "b.jsonl", "--out", "a.jsonl/out.json"], "cannot be written"),
        (["a.jsonl", "b.jsonl", "--out", "out.docx"], r"use one of \.md, \.tex, \.csv, \.json"),
        (["a.jsonl", "b.jsonl", "--junit", "gate.xml"], "no effect without --fail-if"),
        (["a.jsonl", "b.jsonl", "--encoder", "x"], "--encoder x has no effect on length"),
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
    assert result.exit_code == 2
    assert "error: difference(length) < -1 cannot be decided: an interval takes" in result.stderr


def test_a_metric_without_a_score_is_said(run: Run, tiny_bert: Path) -> None:
    """No row has a reference, so that bleu has nothing to compare."""
    alone = run_causerie("compare", "a.jsonl", "b.jsonl", "-m", "bleu,length")
    assert alone.returncode == 2, "a sentinel alone is no comparison"
    assert "warning: bleu scored nothing: no reference" in alone.stderr
    assert alone.stderr.splitlines()[-1].startswith("causerie: nothing was scored by bleu")
    more = ("-m", "bleu,cosine", "--encoder", tiny_bert)
    beside = run_causerie("compare", "a.jsonl", "b.jsonl", *more)
    assert beside.returncode == 1
    assert "warning: bleu scored nothing: no reference" in beside.stderr


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
