"""A judge in a comparison: both orders, empty replies, pairs that cannot be compared."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from causerie.bench.compare import compare
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics.judge import Judge
from chatserver import Reply, completion, serving
from terminal import run_causerie


def rows(replies: list[str]) -> list[dict[str, Any]]:
    return [{"context": [f"question {i}?"], "response": r} for i, r in enumerate(replies)]


def answer(number: int, body: dict[str, Any]) -> Reply:
    """A judge that likes long replies, and what it sees first."""
    said = body["messages"][1]["content"]
    first, second = re.findall(r"^B: (.*)$", said, re.M)
    chance = 0.2 + 0.6 * (len(second) > len(first))
    return completion("1", {"1": math.log(1 - chance), "2": math.log(chance)})


def test_both_orders_are_asked(tmp_path: Path) -> None:
    with serving(answer) as server:
        judge = Judge(url=server.url, model="m", key_env="", answers=str(tmp_path / "a"))
        short, long = ["no"] * 8, ["a longer reply"] * 8
        notes: list[str | None] = []
        result = compare(
            rows(short), rows(long), "length", judge=judge, watch=lambda p: notes.append(p.note)
        )
        assert len(server.asked) == 16
        found = result.column("preference")
        assert (found.mean_a, found.mean_b) == pytest.approx((0.2, 0.8))
        assert found.difference.value == pytest.approx(0.6)
        assert found.win_rate.value == 1
        assert "preference=judge|" in result.signature
        assert "the judge prefers the same reply in both orders in 100% of 8 pairs" in notes
        # equal replies: whatever it sees first wins, so nobody does
        result = compare(rows(short), rows(short), "length", judge=judge)
        assert result.column("preference").difference.value == 0


def test_empty_replies_are_not_asked_about(tmp_path: Path) -> None:
    with serving(answer) as server:
        judge = Judge(url=server.url, model="m", key_env="", answers=str(tmp_path / "a"))
        result = compare(
            rows(["", "no", "", "yes"]), rows(["no", "", "", "no"]), "length", judge=judge
        )
        assert len(server.asked) == 2
        found = result.column("preference")
        assert found.mean_a == pytest.approx((0 + 1 + 0 + 0.8) / 4)
        assert found.mean_b == pytest.approx((1 + 0 + 0 + 0.2) / 4)


def test_without_pairs_there_is_nothing_to_judge(tiny_judge: Path) -> None:
    a = [{"context": [f"a{i}"], "response": "x"} for i in range(6)]
    b = [{"context": [f"b{i}"], "response": "x"} for i in range(6)]
    with pytest.raises(CauserieError, match="most of these have no partner: omit --judge"):
        compare(a, b, "length", judge=Judge(model=str(tiny_judge)))


def test_a_local_judge_is_symmetric(tiny_judge: Path) -> None:
    engines = Engines(Settings(lm=str(tiny_judge), device="cpu", threads=1))
    a, b = rows(["x", "Do you like music?"]), rows(["I am fine, thanks.", "Yes!"])
    one, other = (
        compare(x, y, "length", judge=Judge(), engines=engines).column("preference")
        for x, y in ((a, b), (b, a))
    )
    assert one.mean_b == pytest.approx(other.mean_a)
    assert one.difference.value == pytest.approx(-(other.difference.value or 0))
    assert one.difference.value != 0


def test_the_command_line(tmp_path: Path) -> None:
    for name, replies in {"a": ["no"] * 6, "b": ["a longer reply"] * 6}.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows(replies))
        (tmp_path / f"{name}.jsonl").write_text(lines)
    with serving(answer) as server:
        done = run_causerie(
            "compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--metrics", "length", "--judge",
            *("--judge-url", server.url, "--judge-model", "m", "--judge-key-env", ""),
            *("--set", f"judge.answers={tmp_path / 'answers'}"),
            *("--scores", tmp_path / "scores", "--out", tmp_path / "c.json"),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("preference"))
    assert line.split()[2:5] == ["0.2", "0.8", "+0.6"]
    columns = json.loads((tmp_path / "c.json").read_text())["columns"]
    assert [one["column"] for one in columns] == ["length", "preference"]
