"""The commands as users run them: processes and pipes, exit statuses, no tracebacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

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


@pytest.mark.parametrize(
    "words",
    [
        "import causerie; dir(causerie)",
        "from causerie.cli import app\ntry: app(['score', '--help'])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(words: str) -> None:
    probe = (
        f"import sys\n{words}\n"
        + ("except SystemExit: pass\n" if "try" in words else "")
        + "heavy = {'torch', 'transformers', 'pyarrow', 'scipy', 'numpy', 'causerie.scoring'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "set()"


@pytest.mark.parametrize("command", ["score", "compare", "metrics", "models", "cache", "bench"])
def test_every_command_has_help(command: str) -> None:
    done = run_causerie(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_score_writes_the_contract(conversations: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = causerie("score", conversations, "--metrics", "length,overlap", "--out", out)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    expected = [
        ("a", 1, "B", "hi you", 2.0, 0.5),
        ("a", 2, "A", "bye", 1.0, 0.0),
        ("b", 1, "B", "yes, tea please", 3.0, 1 / 3),
    ]
    assert rows == [
        {
            "dialogue_id": name,
            "turn": turn,
            "speaker": speaker,
            "file": str(conversations),
            "system": None,
            "message": turn,
            "text": text,
            "length": length,
            "overlap": overlap,
        }
        for name, turn, speaker, text, length, overlap in expected
    ]
    assert "signature: causerie|" in done.stderr
    assert not (tmp_path / "out.jsonl.partial").exists()


def test_python_gives_the_same_numbers(conversations: Path, tmp_path: Path) -> None:
    causerie(
        "score", conversations, "--metrics", "length,overlap,turns", "--out", tmp_path / "o.csv"
    )
    for data in (read(conversations), conversations):
        result = evaluate(data, metrics=["length", "overlap", "turns"])
        assert result.to_pylist() == list(read_table(tmp_path / "o.csv"))


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
        {"dialogue_id": "a", "file": str(conversations), "system": None, "length": 1.5},
        {"dialogue_id": "b", "file": str(conversations), "system": None, "length": 3.0},
    ]


def test_explain_says_why_unscored(conversations: Path) -> None:
    done = run_causerie("score", conversations, "--metrics", "bleu", "--explain", "--out", "-")
    assert done.returncode == 2, "nothing was scored"
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
    "option of a metric not chosen": (
        ["--metrics", "bleu", "--set", "rouge.a=2"],
        "given for rouge",
    ),
    "badly written option": (["--metrics", "bleu", "--set", "order"], "METRIC.OPTION=VALUE"),
    "unknown suffix": (["--out", "x.docx"], "suffix"),
    "unknown level": (["--level", "word"], "turn or dialogue"),
    "unknown encoder": (["--metrics", "cosine", "--offline", "--encoder", "no-such"], "no-such"),
    "unknown input format": (["--input-format", "xml"], "use one of"),
    "no percentiles": (["--metrics", "length", "--percentiles"], "percentiles"),
    "report of dialogues": (["--level", "dialogue", "--report", "r.html"], "--level dialogue"),
    "report without text": (["--no-text", "--report", "r.html"], "--no-text"),
    "report that is no page": (["--report", "r.pdf"], ".html"),
    "encoder without effect": (
        ["--metrics", "density", "--encoder", "x"],
        "has no effect on density",
    ),
    "language model without effect": (["--lm", "x"], "--lm x has no effect on length"),
    "hypotheses without effect": (["--hypotheses", "h.json"], "takes --hypotheses"),
    "unknown column": (["--columns", "contxt=history"], "there is no field 'contxt'"),
    "columns badly written": (["--columns", "history"], "context=NAME"),
    "no condition": (["--fail-if", "length"], "cannot be read"),
    "condition on another column": (["--fail-if", "cosine < 1"], "use one of length"),
    "JUnit of nothing": (["--junit", "j.xml"], "--fail-if"),
    "nothing to refresh": (["--refresh"], "--scores"),
    "two metrics of one name": (["--metrics", "bleu,bleu:order=2"], "ALIAS=METRIC"),
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
    assert list(tmp_path.iterdir()) == [conversations]


def test_missing_and_hopeless_files(tmp_path: Path) -> None:
    for name, content, expected in [
        ("missing.jsonl", None, "does not exist"),
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
    assert "1 dialogue had no response to score" in done.stderr
    done = run_causerie("score", path, "--metrics", "length", "--speaker", "C")
    assert done.returncode == 2
    assert "no response by C, the speakers are A, B" in done.stderr


def test_rows_of_context_and_response_are_no_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("context,response\nhi there,hello\n")
    done = run_causerie("score", path, "--metrics", "length", "--level", "dialogue")
    assert done.returncode == 2
    assert "--level dialogue needs whole dialogues" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes as files are a matter of POSIX")
def test_pipes_in_and_out(conversations: Path) -> None:
    command = " ".join([*COMMAND, "score", f"<(cat {conversations})", "-m length --out -"])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    closed = f"set -o pipefail; {command} | true"
    done = subprocess.run(["bash", "-c", closed], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX")
def test_interrupted_runs_say_how_to_go_on(tmp_path: Path) -> None:
    path, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(dialogue(str(i), "hi there", "oh, hi") + "\n" for i in range(5_000)))
    words = ["score", path, "-m", "length,overlap", "--out", out]
    done = ended_by(signal.SIGINT, words, touched=tmp_path / "out.jsonl.partial", times=20)
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


def test_a_page_of_standard_input(conversations: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_causerie(
        "score", "-", "-m", "length", "--report", page, stdin=conversations.read_text()
    )
    assert done.returncode == 0, done.stderr
    assert "tea please" in page.read_text()
    assert "standard input" in page.read_text()


def test_metrics_lists_every_metric_on_a_line_of_its_own() -> None:
    done = run_causerie("metrics")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    for name in ("bleu", "cosine", "perplexity", "overlap"):
        assert name in lines
    assert "references" in lines["bleu"]
    assert lines["perplexity"].split()[1] == "lower"
    assert lines["overlap"].split()[1] == "sentinel"


def test_metrics_shows_all_about_one() -> None:
    done = run_causerie("metrics", "causalscore")
    for part in ("artifact", "noisy-or", "0 to 1", "with percentiles", "causalscore-dream"):
        assert part in done.stdout, part
    assert "maximum length of n-grams" in run_causerie("metrics", "bleu").stdout
    wrong = run_causerie("metrics", "blue")
    assert wrong.returncode == 2
    assert "did you mean bleu" in wrong.stderr


def chats(path: Path, count: int, silent: int = 0) -> Path:
    """Write conversations with an assistant whose replies are empty in the first few."""
    with open(path, "w") as file:
        for number in range(count):
            answer = "" if number < silent else f"I went to the mountains {number} times."
            messages = [
                {"role": "system", "content": "You are helpful."},
                {"role": "user", "content": "Hello! How are you doing today?"},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": "Tell me more about it!"},
                {"role": "assistant", "content": "It was cold and wet."},
            ]
            file.write(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")
    return path


def test_the_assistant_is_scored_where_roles_are_known(tmp_path: Path) -> None:
    path = chats(tmp_path / "chats.jsonl", 2)

    def turns(*options: str) -> list[tuple[int, int]]:
        done = run_causerie("score", path, "-m", "length", "--limit", "1", "--out", "-", *options)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [(row["turn"], row["message"]) for row in rows]

    assert turns() == turns("--speaker", "assistant") == [(1, 2), (3, 4)]
    assert turns("--speaker", "all") == [(1, 2), (2, 3), (3, 4)]
    assert turns("--speaker", "user") == [(2, 3)]


def test_a_silent_bot_fails_the_gate(tmp_path: Path, tiny_bert: Path) -> None:
    """With replies blanked in 18 of 36 dialogues, the rest is scored and the mean is lower."""
    old, new = chats(tmp_path / "old.jsonl", 36), chats(tmp_path / "new.jsonl", 36, silent=18)
    command = ("-m", "cosine", "--encoder", tiny_bert, "--out", "-")

    def mean(rows: str) -> float:
        values = [json.loads(line)["cosine"] for line in rows.splitlines()]
        assert len(values) == 72
        return sum(-1.0 if value is None else value for value in values) / len(values)

    before, after = (run_causerie("score", path, *command) for path in (old, new))
    assert before.returncode == after.returncode == 0
    assert mean(after.stdout) < mean(before.stdout) - 0.3
    gate = f"cosine < {(mean(before.stdout) + mean(after.stdout)) / 2}"
    assert run_causerie("score", old, *command, "--fail-if", gate).returncode == 0
    failed = run_causerie("score", new, *command, "--fail-if", gate)
    assert failed.returncode == 3
    assert "(18 empty)" in failed.stderr
    assert "failed: mean(cosine) < " in failed.stderr
    assert f"it is {mean(after.stdout):.4g}" in failed.stderr
    assert "empty  c0[1]" in failed.stderr
    share = run_causerie("score", new, *command, "--fail-if", "unscored(cosine) > 20%")
    assert share.returncode == 3


def test_gates_in_several_ways(conversations: Path, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    conversations.write_text(conversations.read_text() + "not json\n")

    def status(*conditions: str) -> int:
        gates = [word for condition in conditions for word in ("--fail-if", condition)]
        done = run_causerie("score", conversations, "-m", "length,bleu", *gates, "--junit", junit)
        assert "Traceback" not in done.stderr
        return done.returncode

    assert status("length > 1.9", "length < 1.9") == 3
    assert [case.get("name") for case in ElementTree.parse(junit).iter("testcase")] == [
        "not mean(length) > 1.9",
        "not mean(length) < 1.9",
    ]
    assert len(list(ElementTree.parse(junit).iter("failure"))) == 1
    assert status("skipped > 30%") == 3
    assert status("unscored(bleu) > 99%") == 3, "the gate wins over a metric without scores"
    assert status("bleu < 5") == 2, "it cannot be decided"
    assert len(list(ElementTree.parse(junit).iter("error"))) == 1
    passed = ("score", conversations, "-m", "length", "--fail-if", "length < 1")
    assert run_causerie(*passed).returncode == 1, "a record was skipped"


def test_junit_is_written_where_there_is_nothing_to_score(tmp_path: Path) -> None:
    path, junit = tmp_path / "alone.jsonl", tmp_path / "junit.xml"
    path.write_text(f"{dialogue('a', 'hi')}\n")
    gate = ("--fail-if", "length < 1", "--junit", junit)
    done = run_causerie("score", path, "-m", "length", *gate)
    assert done.returncode == 2
    assert "nothing to score" in done.stderr
    assert len(list(ElementTree.parse(junit).iter("error"))) == 1


def test_a_metric_without_a_score_is_said(tmp_path: Path, conversations: Path) -> None:
    done = run_causerie("score", conversations, "-m", "bleu,length")
    assert done.returncode == 2, "a sentinel alone is no score"
    assert "warning: bleu scored nothing: no reference" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("causerie: nothing was scored by bleu")
    both = json.dumps(
        {
            "id": "r",
            "turns": [
                {"speaker": "A", "text": "hi"},
                {"speaker": "B", "text": "hi you", "references": ["hi you"]},
            ],
        }
    )
    path = tmp_path / "referenced.jsonl"
    path.write_text(f"{both}\n{dialogue('a', 'hi', 'ho')}\n")
    assert run_causerie("score", path, "-m", "bleu,length").returncode == 0
    path.write_text(f"{dialogue('a', 'hi', 'you')}\n")
    assert run_causerie("score", path, "-m", "length,overlap").returncode == 0


def test_columns_can_be_mapped_and_the_message_names_those_found(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("history,reply\nhi there,hello you\n")
    unmapped = run_causerie("score", path, "-m", "length", "--input-format", "csv")
    assert unmapped.returncode == 2
    assert "history" in unmapped.stderr
    assert "reply" in unmapped.stderr
    columns = "context=history,response=reply"
    done = run_causerie("score", path, "-m", "length", "--columns", columns, "--out", "-")
    assert json.loads(done.stdout)["text"] == "hello you"


def test_existing_files_are_overwritten_only_on_request(
    conversations: Path, tmp_path: Path
) -> None:
    command = ("score", conversations, "-m", "length", "--out", tmp_path / "out.csv")
    assert run_causerie(*command).returncode == 0
    again = run_causerie(*command)
    assert again.returncode == 2
    assert "exists already: name another file, or overwrite it with --force" in again.stderr
    assert run_causerie(*command, "--force").returncode == 0


def test_without_text(conversations: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = run_causerie("score", conversations, "-m", "rouge,length", "--no-text", "--out", out)
    assert "tea" not in done.stderr
    assert "tea" not in out.read_text()
    assert "text" not in json.loads(out.read_text().splitlines()[0])


def test_two_orders_of_one_metric(tmp_path: Path) -> None:
    turns = [
        {"speaker": "A", "text": "hi"},
        {"speaker": "B", "text": "a b c q", "references": ["a b c d"]},
    ]
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"id": "r", "turns": turns}) + "\n")
    metrics = ("-m", "bleu,b2=bleu:order=2,b1=bleu", "--set", "b1.order=1")
    done = run_causerie("score", path, *metrics, "--out", "-")
    row = json.loads(done.stdout)
    assert row["b1"] == pytest.approx(75.0)
    assert row["bleu"] < row["b2"] < row["b1"]


def test_scores_can_be_kept_shown_and_forgotten(tmp_path: Path, tiny_bert: Path) -> None:
    path, kept = chats(tmp_path / "chats.jsonl", 3), tmp_path / "scores.sqlite"
    info = ("cache", "info", "--scores", kept)
    assert "no scores are kept" in run_causerie(*info).stdout
    assert not kept.exists()
    score = ("score", path, "-m", "cosine,length", "--encoder", tiny_bert, "--scores", kept)
    first = run_causerie(*score, "--out", "-")
    assert first.returncode == 0, first.stderr
    assert run_causerie(*score, "--out", "-", "--refresh").stdout == first.stdout
    shown = run_causerie(*info).stdout
    assert "6 items" in shown
    assert "cosine" in shown
    assert "length" not in shown
    assert "deleted 6 items" in run_causerie("cache", "clear", "--scores", kept).stdout
    assert "0 items" in run_causerie(*info).stdout


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX")
def test_interrupted_before_the_first_batch(tmp_path: Path) -> None:
    """Standard input never ends, so nothing is scored yet when the run is interrupted."""
    out = tmp_path / "out.jsonl"
    process = subprocess.Popen(
        [*COMMAND, "score", "-", "-m", "length", "--out", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "out.jsonl.partial" / "rows.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "interrupted: nothing was kept" in said
    assert list(tmp_path.iterdir()) == []
