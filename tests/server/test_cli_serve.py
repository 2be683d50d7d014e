"""`causerie serve`: what it refuses, in one sentence, and how it ends."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import causerie
from annotation.making import project_of, talks
from causerie.annotation.store import Store
from scored import chats, write_scores
from terminal import run_causerie


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> object:
        return None if name in ("fastapi", "duckdb") else find_spec(name)

    monkeypatch.setattr(sys.modules["causerie.cli.serve"], "find_spec", without)
    done = run_causerie("serve")
    assert done.returncode == 2
    needed = "causerie: the server needs fastapi, duckdb: run `pip install 'causerie[server]'`\n"
    assert done.stderr == needed


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    for option, value in (("--host", "0.0.0.0"), ("--allow-host", "chat.example")):
        done = run_causerie("serve", "--metrics", "length", "--state", tmp_path, option, value)
        assert done.returncode == 2
        assert "--token-file" in done.stderr
    (tmp_path / "token").write_text("short\n")
    options = ["--state", tmp_path, "--token-file", tmp_path / "token"]
    done = run_causerie("serve", "--metrics", "length", *options)
    assert "20 characters" in done.stderr


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_causerie("serve", "--metrics", "length", "--state", tmp_path, "--port", port)
    assert done.returncode in (2, 4)
    assert f"127.0.0.1:{port} cannot be used" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are told otherwise there")
def test_all_rooms_at_one_address(tmp_path: Path) -> None:
    """The owner may go everywhere; the link of an annotator leads only to their own work."""
    store = Store.open(tmp_path / "study.db", create=True)
    _, tokens = project_of(store, talks(2), ["ann"])
    store.close()
    scores = write_scores(tmp_path / "scores.parquet", chats())
    words = ["serve", scores, "--metrics", "length", "--state", tmp_path / "state", "--port", "0"]
    words += ["--annotate", tmp_path / "study.db"]
    program = [sys.executable, "-c", "from causerie.cli import main; main()", *map(str, words)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address, _, owner = server.stdout.readline().strip().partition("/enter#")
        port = int(address.rpartition(":")[2])

        def status(path: str, token: str | None) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        paths = ("/explorer/api/overview", "/v1/metrics", "/annotate/api/me", "/annotate/lead")
        asked = {who: [status(path, tokens.get(who, who)) for path in paths] for who in
                 (owner, "ann", "lead", "nobody with this token")}  # fmt: skip
        server.send_signal(signal.SIGTERM)
    assert list(asked.values()) == [
        [200, 200, 200, 200],
        [403, 403, 200, 403],
        [403, 403, 200, 200],
        [401, 401, 401, 401],
    ]


@pytest.mark.skipif(os.name != "posix", reason="signals are told otherwise there")
def test_it_serves_until_a_signal_ends_it(tmp_path: Path) -> None:
    words = ["serve", "--metrics", "length", "--state", tmp_path / "state", "--port", "0"]
    words += ["--token-file", tmp_path / "token"]
    program = [sys.executable, "-c", "from causerie.cli import main; main()", *map(str, words)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ""
        while "http" not in said:
            said += server.stderr.readline()
        address = next(word for word in said.split() if word.startswith("http")).rstrip(",")
        token = (tmp_path / "token").read_text().strip()
        client = causerie.Client(address, token)
        assert client.score(["Hi!", "Hello, you."])[0]["length"] == 2
        server.send_signal(signal.SIGTERM)
        said += server.stderr.read()
    assert server.returncode == 128 + signal.SIGTERM
    assert token not in said
    assert "Traceback" not in said
