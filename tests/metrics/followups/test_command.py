"""The shipped dimensions and a user's own, from the command line."""

from __future__ import annotations

import json

import pytest

from causerie.metrics.followups.hypotheses import dimensions
from terminal import run_causerie


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(words: str):
    return run_causerie(*words.split())


def test_score_and_explain(tiny_llama, tmp_path):
    turns = [
        {"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(("Hi!", "Tea?", "No."))
    ]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "d", "turns": turns}))
    (tmp_path / "own.json").write_text(
        json.dumps({"turn": {"kind": {"positive": ["Aw, thanks!"]}}})
    )
    words = "--metrics fed,cpmi,length --hypotheses own.json --explain --out out.jsonl"
    done = run(f"score in.jsonl {words} --lm {tiny_llama}")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    shipped = dimensions()["turn"]
    names = [dimension.name for dimension in shipped]
    columns = [
        *(f"fed.{name}" for name in (*names, "kind", "overall")),
        *(f"cpmi.{name}" for name in (*names, "kind", "overall")),
        "length",
    ]
    assert [row["turn"] for row in rows] == [1, 2]
    for row in rows:
        keys = ["dialogue_id", "turn", "speaker", "file", "system", "message", "text"]
        assert list(row) == [*keys, *columns, "explanation"]
        for metric in ("fed", "cpmi"):
            # The own dimension has one side only: it is not in the mean.
            mean = sum(row[f"{metric}.{name}"] for name in names) / len(names)
            assert row[f"{metric}.overall"] == pytest.approx(mean)
            for dimension in shipped:
                explained = row["explanation"][f"{metric}.{dimension.name}"]
                assert explained["positive"].keys() == set(dimension.positive)
                assert explained["negative"].keys() == set(dimension.negative)


def test_dialogues_with_a_toml_file(tiny_llama, tmp_path):
    (tmp_path / "in.txt").write_text("A: Hi!\nB: Tea?\nA: No.\n")
    (tmp_path / "own.toml").write_text("[dialogue.depth]\nnegative = ['We only scratch at it.']\n")
    words = "--metrics cpmi --level dialogue --hypotheses own.toml --out out.jsonl"
    done = run(f"score in.txt {words} --lm {tiny_llama}")
    assert done.returncode == 0, done.stderr
    [row] = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    for dimension in dimensions()["dialogue"]:
        assert isinstance(row[f"cpmi.{dimension.name}"], float)


@pytest.mark.parametrize(
    ("metric", "file", "complaint"),
    [
        ("length", "own.json", "none of length takes --hypotheses"),
        ("fed", "gone.json", "gone.json cannot be read: No such file"),
        ("fed", "own.json", "own.json: turn.kind has no follow-up"),
        ("fed", "own.yaml", "own.yaml is neither JSON nor TOML"),
    ],
)
def test_what_is_wrong_with_hypotheses(tmp_path, metric, file, complaint):
    (tmp_path / "in.txt").write_text("A: Hi!\nB: Tea?\n")
    (tmp_path / "own.json").write_text('{"turn": {"kind": {"positive": []}}}')
    (tmp_path / "own.yaml").write_text("turn: {}")
    done = run(f"score in.txt --metrics {metric} --hypotheses {file}")
    assert done.returncode == 2
    assert complaint in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
