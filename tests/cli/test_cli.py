"""The commands as a user runs them: processes and pipes, exit statuses, no tracebacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from causerie import evaluate, read
from causerie.io import read_table
from terminal import ended_by, run_causerie

COMMAND = [sys.executable, "-m", "causerie"]


def causerie(*words: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def dialogue(identifier: str, *texts: str) -> str:
    turns = [{"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(texts)]
    return json.dumps({"id": identifier, "turns": turns})


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    lines = [dialogue("a", "hi there", "hi you", "bye"), dialogue("b", "tea?", "yes, tea please")]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_help_loads_nothing_heavy() -> None:
    probe = (
        "import sys\n"
        "from causerie.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'pyarrow', 'scipy', 'numpy'} & set(sys.modules)\n"
        "print(heavy, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "score" in done.stdout
    assert done.stderr.strip() == "set()"


@pytest.mark.parametrize("command", ["score", "compare", "metrics", "models", "bench"])
def test_every_command_has_help(command: str) -> None:
    done = run_causerie(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_score_writes_the_contract(conversations: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = causerie("score", conversations, "--metrics", "length,overlap", "--out", out)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == [
        {"dialogue_id": "a", "turn": 1, "speaker": "B", "length": 2.0, "overlap": 0.5},
        {"dialogue_id": "a", "turn": 2, "speaker": "A", "length": 1.0, "overlap": 0.0},
        {"dialogue_id": "b", "turn": 1, "speaker": "B", "length": 3.0, "overlap": 1 / 3},
    ]
    assert "signature: causerie|" in done.stderr
    assert not (tmp_path / "out.jsonl.partial").exists()


def test_python_gives_the_same_numbers(conversations: Path, tmp_path: Path) -> None:
    causerie(
        "score", conversations, "--metrics", "length,overlap,turns", "--out", tmp_path / "o.csv"
    )
    table = evaluate(read(conversations), metrics=["length", "overlap", "turns"])
    assert table.to_pylist() == list(read_table(tmp_path / "o.csv"))


def test_standard_input_to_standard_output(conversations: Path) -> None:
    done = causerie(
        "score", "-", "--metrics", "length", "--out", "-", stdin=conversations.read_text()
    )
    assert [json.loads(line)["length"] for line in done.stdout.splitlines()] == [2.0, 1.0, 3.0]


def test_speaker_limit_and_level(conversations: Path) -> None:
    def rows(*options: str) -> list[dict[str, object]]:
        done = run_causerie("score", conversations, "--metrics", "length", "--out", "-", *options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [(r["dialogue_id"], r["turn"]) for r in rows("--speaker", "B")] == [("a", 1), ("b", 1)]
    assert [r["dialogue_id"] for r in rows("--limit", "1")] == ["a", "a"]
    assert rows("--level", "dialogue") == [
        {"dialogue_id": "a", "length": 1.5},
        {"dialogue_id": "b", "length": 3.0},
    ]


def test_explain_says_why_unscored(conversations: Path) -> None:
    done = run_causerie("score", conversations, "--metrics", "bleu", "--explain", "--out", "-")
    assert json.loads(done.stdout.splitlines()[0])["explanation"] == {
        "bleu": {"unscored": "no reference"}
    }
    assert "bleu: 3 unscored: no reference" in done.stderr


def test_bad_records_are_reported_and_the_rest_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text(dialogue("a", "hi", "you") + "\nnot json\n" + dialogue("b", "hm", "oh") + "\n")
    done = causerie("score", path, "--metrics", "length", "--out", "-")
    assert done.returncode == 1
    assert [json.loads(line)["dialogue_id"] for line in done.stdout.splitlines()] == ["a", "b"]
    assert f"skipped {path}:2: " in done.stderr
    assert "1 of 3 records skipped" in done.stderr
    strict = causerie("score", path, "--metrics", "length", "--strict", "--out", tmp_path / "o.csv")
    assert strict.returncode == 2
    assert f"{path}:2: " in strict.stderr
    assert not (tmp_path / "o.csv").exists()


NOTHING_CAN_BE_DONE = {
    "unknown metric": (["--metrics", "lenght"], "did you mean length"),
    "no metric": (["--metrics", ","], "causerie metrics"),
    "unknown option": (["--metrics", "bleu", "--set", "bleu.ordr=2"], "has no option"),
    "option of a metric not chosen": (["--metrics", "bleu", "--set", "rouge.a=2"], "does not"),
    "badly written option": (["--metrics", "bleu", "--set", "order"], "METRIC.OPTION=VALUE"),
    "unknown suffix": (["--out", "x.docx"], "suffix"),
    "unknown level": (["--level", "word"], "turn or dialogue"),
    "unknown encoder": (["--metrics", "cosine", "--offline", "--encoder", "no-such"], "no-such"),
    "unknown input format": (["--input-format", "xml"], "use one of"),
    "no percentiles": (["--metrics", "length", "--percentiles"], "percentiles"),
    "report of dialogues": (["--level", "dialogue", "--report", "r.html"], "--level dialogue"),
}


@pytest.mark.parametrize("case", NOTHING_CAN_BE_DONE)
def test_what_cannot_be_done_is_one_sentence(
    case: str, conversations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, expected = NOTHING_CAN_BE_DONE[case]
    monkeypatch.chdir(tmp_path)
    metrics = [] if "--metrics" in options else ["--metrics", "length"]
    done = run_causerie("score", conversations, *metrics, *options)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_missing_and_hopeless_files(tmp_path: Path) -> None:
    for name, content, expected in [
        ("missing.jsonl", None, "no such file"),
        ("empty.jsonl", "", ""),
        ("bad.jsonl", "{}\n", "nothing to score: 1 records read, 1 of them bad"),
    ]:
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        done = run_causerie("score", path, "--metrics", "length")
        assert done.returncode == 2, (name, done.stderr)
        assert expected in done.stderr
        assert "Traceback" not in done.stderr


def test_no_weights_and_no_network(conversations: Path, tmp_path: Path) -> None:
    done = run_causerie(
        "score", conversations, "--metrics", "cosine", "--offline", "--models-dir", tmp_path / "m"
    )
    assert done.returncode == 2
    assert "causerie models pull" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.default_models
def test_tampered_weights(conversations: Path, tmp_path: Path, default_models: object) -> None:
    folder = Path(run_causerie("models", "path", "all-MiniLM-L6-v2").stdout.strip())
    copy = tmp_path / "models" / folder.name
    copy.mkdir(parents=True)
    for file in folder.rglob("*"):
        if file.is_file():
            target = copy / file.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    weights = copy / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    done = run_causerie(
        "score",
        conversations,
        "--metrics",
        "cosine",
        "--models-dir",
        tmp_path / "models",
        "--offline",
    )
    assert done.returncode == 2
    assert "model.safetensors" in done.stderr
    assert "causerie models pull" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_had_nothing_to_score_is_said(tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text(dialogue("a", "alone") + "\n" + dialogue("b", "hm", "oh") + "\n")
    done = run_causerie("score", path, "--metrics", "length")
    assert done.returncode == 0
    assert "1 dialogues had no response to score" in done.stderr
    done = run_causerie("score", path, "--metrics", "length", "--speaker", "C")
    assert done.returncode == 2
    assert "no response by C, the speakers are A, B" in done.stderr


def test_rows_of_context_and_response_are_no_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("context,response\nhi there,hello\n")
    done = run_causerie("score", path, "--metrics", "length", "--level", "dialogue")
    assert done.returncode == 2
    assert "leave --level dialogue out" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes as files are a matter of POSIX")
def test_pipes_in_and_out(conversations: Path) -> None:
    command = " ".join([*COMMAND, "score", f"<(cat {conversations})", "-m length --out -"])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    closed = f"set -o pipefail; {command} | true"
    done = subprocess.run(["bash", "-c", closed], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX")
def test_interrupted_runs_say_how_to_go_on(tmp_path: Path) -> None:
    path, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(dialogue(str(i), "hi there", "oh, hi") + "\n" for i in range(5_000)))
    words = ["score", path, "-m", "length,overlap", "--out", out]
    done = ended_by(signal.SIGINT, words, touched=tmp_path / "out.jsonl.partial", times=10)
    assert done.returncode == 130, done.stderr
    assert "the same command goes on" in done.stderr
    assert "Traceback" not in done.stderr
    done = causerie(*words)
    assert done.returncode == 0
    assert "continuing an interrupted run" in done.stderr
    assert out.read_bytes().count(b"\n") == 5_000


def test_report_page(conversations: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_causerie("score", conversations, "--metrics", "length,overlap", "--report", page)
    assert done.returncode == 0, done.stderr
    assert "tea please" in page.read_text()


def test_metrics_lists_every_metric() -> None:
    done = run_causerie("metrics")
    for name in ("bleu", "cosine", "perplexity", "overlap"):
        assert name in done.stdout
