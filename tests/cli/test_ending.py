"""How commands end when the environment fails: one sentence, a status, no leftovers."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from causerie.cli.ending import status_of
from causerie.errors import CauserieError
from causerie.io import atomic_write
from causerie.scoring import ScoreStore
from terminal import ended_by, run_causerie

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, signals and limits of POSIX")

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2  # of Linux
ESCAPES = "\x1b[31m\x07\x9b2J\u202e"
COMMANDS = [
    ["score", "IN", "-m", "length", "--out", "-"],
    ["compare", "IN", "IN", "-m", "length", "--scores", "SCORES"],
    ["metrics"],
    ["models", "list"],
    ["cache", "info", "--scores", "SCORES"],
    ["bench", "sets"],
    ["graph", "info"],
    ["--help"],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    turns = [{"speaker": s, "text": t} for s, t in (("A", "hi there"), ("B", "oh, hello you"))]
    path.write_text("".join(json.dumps({"id": f"d{n}", "turns": turns}) + "\n" for n in range(800)))
    return path


def shell(command: list[str], data: Path, redirected: str) -> subprocess.CompletedProcess[str]:
    scores = data.with_name("scores.sqlite")
    places = {"IN": str(data), "SCORES": str(scores)}
    words = [sys.executable, "-m", "causerie", *(places.get(word, word) for word in command)]
    line = f"set -o pipefail; {' '.join(words)} {redirected}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


def check_failed(done: subprocess.CompletedProcess[str], *expected: str) -> None:
    assert done.returncode == 4, done
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("causerie: ")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    for part in expected:
        assert part in sentence


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_output_that_is_full(data: Path, command: list[str]) -> None:
    ScoreStore(data.with_name("scores.sqlite")).close()
    check_failed(shell(command, data, "> /dev/full"), "No space left on device")


@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[4]], ids=lambda words: words[0])
def test_output_that_is_closed(data: Path, command: list[str]) -> None:
    check_failed(shell(command, data, ">&-"), "Bad file descriptor")


@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[2]], ids=lambda words: words[0])
def test_output_that_nobody_reads(data: Path, command: list[str]) -> None:
    done = shell(command, data, "| sleep 0")
    if done.returncode:  # a little may fit into the pipe before it is closed
        check_failed(done, "the output was closed")


def test_nothing_is_amiss_where_a_closed_stream_is_not_needed(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = shell(["score", "IN", "-m", "length", "--out", str(out)], data, ">&- <&- 2>&-")
    assert done.returncode == 0
    assert len(out.read_text().splitlines()) == 800


def test_input_that_is_closed(data: Path) -> None:
    done = shell(["score", "-", "-m", "length"], data, "<&-")
    check_failed(done, "standard input cannot be read")


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "-"])
def test_a_full_disk(data: Path, tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    place = "-" if out == "-" else str(tmp_path / out)
    command = [sys.executable, "-m", "causerie", "score", str(data), "-m", "length", "--out", place]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))

    failed = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=limited
    )
    check_failed(failed, "File too large", "make room")
    assert not (tmp_path / out).exists()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {data.name, out}
    assert left == set()


def bound_by_permissions(words: list[object]) -> subprocess.CompletedProcess[str]:
    """`causerie WORDS` by somebody who may not do everything.

    Root gives up what lets it pass over permissions, and keeps its name: another user might not
    get at the Python that runs this.
    """

    def give_up() -> None:
        if os.geteuid() == 0:
            prctl = ctypes.CDLL(None, use_errno=True).prctl
            for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
                if prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                    raise OSError(ctypes.get_errno(), "prctl")

    command = [sys.executable, "-m", "causerie", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=give_up)


@pytest.mark.skipif(sys.platform != "linux", reason="root cannot give that up elsewhere")
def test_what_may_not_be_read_or_written(data: Path, tmp_path: Path) -> None:
    data.chmod(0)
    check_failed(bound_by_permissions(["score", data, "-m", "length"]), "Permission denied")
    data.chmod(0o600)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    for words in (
        ["score", data, "-m", "length", "--out", folder / "out.csv"],
        ["score", data, "-m", "length", "--report", folder / "page.html"],
        ["score", data, "-m", "length", "--scores", folder / "scores.sqlite"],
        ["models", "pull", "all-MiniLM-L6-v2", "--models-dir", folder, "--from", data],
    ):
        check_failed(bound_by_permissions(words), "cannot be")
    assert list(folder.iterdir()) == []


def test_a_locked_store(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = tmp_path / "scores.sqlite"
    ScoreStore(scores).close()
    monkeypatch.setattr("causerie.scoring.store.WAIT", 0.01)
    other = sqlite3.connect(scores, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for words in (["cache", "clear"], ["score", data, "-m", "length"]):
        check_failed(run_causerie(*words, "--scores", scores), "database is locked")
    other.close()


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (None, 2),
        (FileNotFoundError(errno.ENOENT, "missing"), 2),
        (IsADirectoryError(errno.EISDIR, "a folder"), 2),
        (OSError("not gzipped"), 2),
        (PermissionError(errno.EACCES, "no"), 4),
        (OSError(errno.EROFS, "read-only"), 4),
        (OSError(errno.ENOSPC, "full"), 4),
        (sqlite3.OperationalError("locked"), 4),
        (TimeoutError(), 4),
    ],
)
def test_what_caused_an_error_decides_the_status(cause: Exception | None, status: int) -> None:
    error = CauserieError("told in a sentence")
    error.__cause__ = cause
    assert status_of(error) == status


@pytest.mark.parametrize(
    ("number", "times"),
    [(signal.SIGTERM, 12), (signal.SIGTERM, 5), (signal.SIGHUP, 12), (signal.SIGINT, 12)],
)
def test_a_signal_leaves_nothing_behind(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, times: int
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    words = ["score", data, "-m", "length", "--report", tmp_path / "page.html"]
    done = ended_by(number, words, touched=place / "causerie-", times=times)
    assert done.returncode == 128 + number, done.stderr
    assert ("interrupted: nothing was kept" in done.stderr) == (times == 12)
    assert "Traceback" not in done.stderr
    assert list(place.iterdir()) == []


def test_a_terminated_run_goes_on(data: Path, tmp_path: Path) -> None:
    words = ["score", data, "-m", "length", "--out", tmp_path / "out.jsonl"]
    done = ended_by(signal.SIGTERM, words, touched=tmp_path / "out.jsonl.partial", times=20)
    assert done.returncode == 128 + signal.SIGTERM
    assert "the same command goes on" in done.stderr
    done = run_causerie(*words)
    assert done.returncode == 0
    assert "continuing an interrupted run" in done.stderr


@pytest.mark.parametrize("times", [5, 12])
def test_a_killed_run_is_cleared_up_after(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = ["score", data, "-m", "length"]
    ended_by(signal.SIGKILL, words, touched=tmp_path / "causerie-", times=times)
    assert len(list(tmp_path.glob("causerie-*"))) == 1
    assert run_causerie(*words).returncode == 0
    assert list(tmp_path.iterdir()) == [data]


def test_hidden_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = tmp_path / f".out.csv.{ended.pid}-0123abcd.tmp"
    living = tmp_path / f".out.csv.{os.getppid()}-0123abcd.tmp"
    other = tmp_path / f".other.csv.{ended.pid}-0123abcd.tmp"
    for file in (dead, living, other):
        file.touch()
    with atomic_write(tmp_path / "out.csv") as out:
        out.write(b"whole")
    assert {*tmp_path.iterdir()} == {tmp_path / "out.csv", living, other}


def hostile_dialogue() -> str:
    turns = [{"speaker": f"{ESCAPES}{s}", "text": f"{ESCAPES}hello"} for s in "AB"]
    return json.dumps({"id": f"{ESCAPES}d", "system": ESCAPES, "turns": turns}) + "\n"


def test_no_control_character_reaches_a_terminal(tmp_path: Path) -> None:
    """Escapes come from speakers, ids, columns, names of files, metrics, formats and graphs."""
    good, table, bad = (tmp_path / f"{name}{ESCAPES}" for name in ("good", "table.csv", "bad"))
    good.write_text(hostile_dialogue() * 2)
    table.write_text(f"con{ESCAPES},resp\na,b\n")
    bad.write_text(hostile_dialogue() + "{\n")
    graph, triples = tmp_path / "graph", tmp_path / f"mine{ESCAPES}.jsonl"
    triples.write_text(json.dumps({"head": "dog", "rel": "IsA", "tail": f"cat{ESCAPES}"}) + "\n")
    build = ("graph", "build", "--triples", triples, "--dimension", "0", "--out", graph)
    commands: list[tuple[object, ...]] = [
        ("score", good, "-m", "length", "--out", "-"),
        ("score", good, "-m", "length", "--speaker", "nobody"),
        ("score", bad, "-m", "length"),
        ("score", table, "-m", "length", "--input-format", "csv"),
        ("score", tmp_path / f"missing{ESCAPES}", "-m", "length"),
        ("score", good, "-m", f"len{ESCAPES}"),
        ("score", good, "-m", "length", "--input-format", ESCAPES),
        ("compare", good, bad, "-m", "length", "--scores", tmp_path / "scores.sqlite"),
        (*build, "--licence", f"free{ESCAPES}"),
        ("graph", "info", graph),
        ("graph", "neighbours", "dog", "--graph", graph),
        ("cache", "info", "--scores", tmp_path / f"none{ESCAPES}"),
    ]
    for words in commands:
        done = run_causerie(*words)
        written = done.stdout + done.stderr
        assert written.strip(), words
        assert not set(written) & set(ESCAPES[:1] + "\x07\x9b\u202e"), words


def test_rows_on_standard_output_are_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(hostile_dialogue())
    row = json.loads(run_causerie("score", path, "-m", "length", "--out", "-").stdout)
    assert (row["dialogue_id"], row["text"]) == (f"{ESCAPES}d", f"{ESCAPES}hello")


def test_many_skipped_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(hostile_dialogue() + "{\n" * 500)
    commands = [("score", path), ("compare", path, path, "--scores", tmp_path / "scores.sqlite")]
    for words in commands:
        done = run_causerie(*words, "-m", "length")
        assert done.returncode == 1
        named = [line for line in done.stderr.splitlines() if line.startswith("skipped ")]
        assert len(named) == 21
        assert "more lines like this" in named[-1]
