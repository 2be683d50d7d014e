"""The shipped dimensions and a user's own, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from causerie.metrics.followups.hypotheses import dimensions


def test_score_and_explain(tiny_llama, tmp_path):
    turns = [
        {"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(("Hi!", "Tea?", "No."))
    ]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "d", "turns": turns}))
    (tmp_path / "own.json").write_text(
        json.dumps({"turn": {"kind": {"positive": ["Aw, thanks!"]}}})
    )
    words = (
        "score in.jsonl --metrics fed,cpmi,length --hypotheses own.json --explain --out out.jsonl"
    )
    done = subprocess.run(
        [sys.executable, "-m", "causerie", *words.split(), "--lm", str(tiny_llama)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
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
        assert list(row) == ["dialogue_id", "turn", "speaker", *columns, "explanation"]
        for metric in ("fed", "cpmi"):
            # The own dimension has one side only: it is not in the mean.
            mean = sum(row[f"{metric}.{name}"] for name in names) / len(names)
            assert row[f"{metric}.overall"] == pytest.approx(mean)
            for dimension in shipped:
                explained = row["explanation"][f"{metric}.{dimension.name}"]
                assert explained["positive"].keys() == set(dimension.positive)
                assert explained["negative"].keys() == set(dimension.negative)


def test_metrics_without_hypotheses_say_so(tmp_path):
    (tmp_path / "in.txt").write_text("A: Hi!\nB: Tea?\n")
    words = "score in.txt --metrics length --hypotheses own.json"
    done = subprocess.run(
        [sys.executable, "-m", "causerie", *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "none of length takes --hypotheses" in done.stderr
