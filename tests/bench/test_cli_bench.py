"""`causerie bench` from the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from causerie.bench.papers.printed import PAPERS, printed_tables
from causerie.bench.results import from_json
from causerie.cli import main


class Terminal:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def run(self, *words: object) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error."""
        self.monkeypatch.setattr(sys, "argv", ["causerie", "bench", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        shown = self.capsys.readouterr()
        return int(exit_.value.code or 0), shown.out, shown.err


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    records = [
        {
            "id": f"i{i}",
            "context": [{"speaker": "A", "text": f"Question {i // 3}?"}],
            "response": {"speaker": "B", "text": "word " * (1 + i % 7)},
            "reference": "word and word",
            "system": "xyz"[i % 3],
            "ratings": {"overall": [i % 7, (i + 1) % 5]},
        }
        for i in range(36)
    ]
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder


def test_sets(terminal: Terminal) -> None:
    status, out, _ = terminal.run("sets")
    assert status == 0
    assert "* fed_turn: " in out
    assert "  dstc7: " in out
    assert "licence: " in out
    assert "https://github.com/li3cmz/GRADE" in out


def test_convert(terminal: Terminal, tmp_path: Path) -> None:
    entry = {
        "context": "User: Hi!\nSystem: Hello.\nUser: How are you?",
        "response": "System: Fine.",
        "system": "Meena",
        "annotations": {"Overall": [3, 4, 4]},
    }
    source, out = tmp_path / "fed_data.json", tmp_path / "fed_turn.jsonl"
    source.write_text(json.dumps([entry]))
    status, shown, _ = terminal.run("convert", "fed_turn", source, "--out", out)
    assert status == 0
    assert "1 records" in shown
    assert json.loads(out.read_text())["ratings"] == {"Overall": [3, 4, 4]}
    status, _, error = terminal.run("convert", "nonsense", source, "--out", out)
    assert status == 2
    assert "no converter for 'nonsense'" in error


def test_run(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    few = ("--resamples", 20, "--permutations", 50, "--scores", tmp_path / "scores.sqlite")
    command = ("run", "--data", data, "--sets", "own", "--metrics", "bleu", *few)
    status, out, error = terminal.run(*command, "--out", tmp_path / "out")
    assert status == 0, error
    assert "own" in out
    assert "1 set, 4 metrics: about " in error
    assert "results.html" in error
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["column"] for row in found["sets"][0]["rows"]} == {
        "bleu",
        "length",
        "turns",
        "overlap",
    }
    again = tmp_path / "again"
    assert terminal.run(*command, "--out", again)[0] == 0
    results = [from_json((out / "results.json").read_text()) for out in (tmp_path / "out", again)]
    first, second = ([replace(r, seconds_per_1000=None) for r in x.sets[0].rows] for x in results)
    assert first == second
    assert results[0].signature == results[1].signature


def test_what_a_user_can_mend_is_one_sentence(
    terminal: Terminal, data: Path, tmp_path: Path
) -> None:
    for words, sentence in (
        (("run", "--data", tmp_path / "nowhere"), "there is no folder"),
        (("run", "--data", data, "--sets", "ownn"), "there is no set 'ownn'"),
        (("run", "--data", data, "--sets", "own", "--metrics", "blue"), "unknown metric 'blue'"),
        (("reproduce", "nobody", "--data", data), "nobody"),
        (("probe", "--data", data, "--metrics", "length", "--attacks", "nothing"), "nothing"),
    ):
        status, _, error = terminal.run(*words, "--scores", tmp_path / "scores.sqlite")
        assert status == 2
        assert sentence in error
        assert "Traceback" not in error


def test_reproduce(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "causalscore.md"
    status, shown, _ = terminal.run(
        "reproduce", "causalscore", "--data", data, "--metrics", "bleu", "--out", out,
        "--scores", tmp_path / "scores.sqlite",
    )  # fmt: skip
    assert status == 0
    assert "Table 3" in shown
    assert "Table 3" in out.read_text()


@pytest.mark.parametrize("suffix", ["tex", "csv", "json"])
def test_reproduced_tables_by_suffix(
    terminal: Terminal, data: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"causalscore.{suffix}"
    words = ("reproduce", "causalscore", "--data", data, "--metrics", "bleu", "--out", out)
    assert terminal.run(*words, "--scores", tmp_path / "scores.sqlite")[0] == 0
    text = out.read_text()
    assert "BLEU" in text
    assert "Table 3" in text
    assert "| ---" not in text


def test_an_unknown_suffix_is_refused_before_anything_is_scored(
    terminal: Terminal, data: Path, tmp_path: Path
) -> None:
    for words in (
        ("reproduce", "causalscore", "--data", data, "--metrics", "bleu"),
        ("run", "--data", data, "--sets", "own", "--metrics", "bleu"),
        ("probe", "--data", data, "--metrics", "length"),
        ("rank", "--data", data / "own.jsonl", "--metrics", "length"),
        ("causes", "--annotations", data / "own.jsonl"),
    ):
        status, shown, error = terminal.run(*words, "--out", tmp_path / "table.docx")
        assert (status, shown) == (2, "")
        assert "table.docx has no known suffix: use one of .md, .tex, .csv, .json" in error


def test_every_command_has_the_engines_and_the_store(terminal: Terminal) -> None:
    for command in ("run", "reproduce", "probe", "rank", "causes"):
        _, shown, _ = terminal.run(command, "--help")
        wanted = ["--encoder", "--lm", "--device", "--dtype", "--backend", "--threads", "--offline"]
        if command != "causes":
            wanted += ["--scores", "--refresh"]
        assert [option for option in wanted if option not in shown] == []


def test_reproduce_all(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.md"
    status, shown, error = terminal.run(
        "reproduce", "all", "--data", data, "--metrics", "bleu", "--out", out,
        "--set", "bleu.order=2", "--scores", tmp_path / "scores.sqlite",
    )  # fmt: skip
    assert status == 0, error
    for name in PAPERS:
        assert printed_tables(name).title in shown
        assert printed_tables(name).title in out.read_text()


def test_options_and_dimension(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    status, _, error = terminal.run(
        "run", "--data", data, "--sets", "own", "--metrics", "bleu", "--set", "bleu.order=2",
        "--dimension", "Overall", "--resamples", 20, "--permutations", 50,
        "--scores", tmp_path / "scores.sqlite", "--out", tmp_path / "out",
    )  # fmt: skip
    assert status == 0, error
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "bleu(order=2)" in found["signature"]
    assert found["options"]["dimension"] == "Overall"
    assert found["sets"][0]["dimension"] == "overall"


def test_probe(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    attack = [
        {
            "id": f"x{i}",
            "context": [{"speaker": "A", "text": f"Two boys {i}?"}],
            "answer": "Yes, two of them.",
            "adversarial": "Yes.",
        }
        for i in range(5)
    ]
    (data / "ner.jsonl").write_text("\n".join(map(json.dumps, attack)))
    status, shown, error = terminal.run(
        "probe", "--data", data, "--attacks", "ner", "--metrics", "length",
        "--scores", tmp_path / "scores.sqlite", "--out", tmp_path / "out",
    )  # fmt: skip
    assert status == 0, error
    assert "| *length* | 1.00" in shown
    assert (tmp_path / "out" / "probe.md").read_text() == shown.rstrip("\n") + "\n"
    assert json.loads((tmp_path / "out" / "probe.json").read_text())["attacks"][0]["name"] == "ner"
