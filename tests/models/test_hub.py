"""Hub names and hub sources, against a local server with one model."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from models.shelf import Shelf, wheel_source

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """Serves what the hub client requests: /owner/tiny/resolve/REVISION/FILE."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        self.asked.append(self.path)
        parts = self.path.split("?")[0].strip("/").split("/")
        known = parts[:3] == ["owner", "tiny", "resolve"] and parts[3] in ("main", COMMIT)
        file = self.folder.joinpath(*parts[4:]) if known else None
        if file is None or not file.is_file():
            self.send_response(404)
            missing = "Entry" if "owner/tiny/" in self.path else "Repo"
            self.send_header("X-Error-Code", f"{missing}NotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class LocalHub:
    environment: dict[str, str]
    """Environment of a process that uses our server as the hub."""
    asked: list[str]
    """All paths that were requested."""


@pytest.fixture(scope="module")
def hub(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHub]:
    folder = tmp_path_factory.mktemp("hub")
    for file in tiny_bert.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32}')
    asked: list[str] = []
    handler = type("Handler", (Hub,), {"folder": folder, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path_factory.mktemp("home")),
        "HF_HUB_DISABLE_XET": "1",
    }
    yield LocalHub(os.environ | environment, asked)
    server.shutdown()
    server.server_close()


def run(environment: dict[str, str], code: str, *arguments: object) -> dict[str, object]:
    """Run code in a new process; return the `answer` that it fills."""
    preface = (
        "import json, sys; from pathlib import Path; from causerie.errors import CauserieError;"
        "from causerie.models import Store, load_backbone; answer = {}\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            preface + code + "\nprint(json.dumps(answer))",
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    noise = [line for line in done.stderr.splitlines() if not line.startswith("causerie: ")]
    assert noise == []
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_hub_name_online_then_offline(hub: LocalHub, tmp_path: Path) -> None:
    code = """
import torch
store = Store(Path(sys.argv[1]), offline=sys.argv[2] == "offline")
try:
    loaded = load_backbone(
        store, "owner/tiny", "encoder", dtype=torch.float32, device=torch.device("cpu")
    )
    answer = {"sha256": loaded.sha256, "window": loaded.window, "pooling": loaded.pooling}
    store.resolve("owner/nothing", "encoder")
except CauserieError as error:
    answer["error"] = str(error)
"""
    before = run(hub.environment, code, tmp_path, "offline")
    assert hub.asked == []
    assert set(before) == {"error"}
    assert "--offline" in before["error"]
    online = run(hub.environment, code, tmp_path, "online")
    error = online.pop("error")
    assert online == {"sha256": COMMIT, "window": 32, "pooling": "first"}
    assert error == (
        "owner/nothing is neither a known model nor a folder, nor available from the model hub "
        "(the model hub has no such model, or none you may see): check the name, or give a folder; "
        "the known names are all-MiniLM-L6-v2, all-mpnet-base-v2"
    )
    hub.asked.clear()
    offline = run(hub.environment, code, tmp_path, "offline")
    assert hub.asked == []
    assert "owner/nothing" in offline.pop("error")
    assert offline == online


@pytest.mark.slow
def test_a_cached_config_is_no_consent(hub: LocalHub, tmp_path: Path) -> None:
    """A model that only an artifact names must be complete in the cache."""
    code = """
import torch
store = Store(Path(sys.argv[1]))
def consented():
    try:
        kept = store.consented("owner/tiny", "encoder", "ask for it")
        load_backbone(
            kept, "owner/tiny", "encoder", dtype=torch.float32, device=torch.device("cpu")
        )
        return "loaded"
    except CauserieError as error:
        return str(error)
answer["nothing"] = consented()
store.resolve("owner/tiny", "encoder")  # which fetches the settings alone
answer["settings"] = consented()
store.files(store.resolve("owner/tiny", "encoder"))
answer["known"] = [consented(), store.consented("default", "encoder", "") is store, store.offline]
"""
    hub.asked.clear()
    found = run(hub.environment | {"HF_HOME": str(tmp_path / "home")}, code, tmp_path)
    assert "fetched only if you ask for it: ask for it" in found["nothing"]
    assert found["settings"] == found["nothing"]
    assert found["known"] == ["loaded", True, False]
    fetched = [path for path in hub.asked if path.endswith("model.safetensors")]
    assert len(fetched) == 2  # its head and its body, once, when it was asked for


@pytest.mark.slow
def test_a_hub_that_does_not_answer(hub: LocalHub, tmp_path: Path) -> None:
    """The hub is asked only once, though its client would keep trying; a local copy is used."""
    code = """
connections = []
sys.addaudithook(lambda event, _: event == "socket.connect" and connections.append(event))
def resolve(name):
    try:
        return Store(Path(sys.argv[1])).resolve(name, "encoder").sha256
    except CauserieError as error:
        return str(error)
answer = {"found": [resolve("owner/tiny"), resolve("owner/nothing")]}
answer["connections"] = len(connections)
"""
    here = hub.environment
    run(here, "Store(Path(sys.argv[1])).resolve('owner/tiny', 'encoder')", tmp_path)
    silent = run(here | {"HF_ENDPOINT": "http://127.0.0.1:9"}, code, tmp_path)
    copy, error = silent["found"]
    assert copy == COMMIT
    assert "(the model hub does not answer): check the name" in error
    assert silent["connections"] == 2  # one for each name


@pytest.mark.slow
def test_the_hub_steps_in_for_a_vanished_package(
    hub: LocalHub, tiny_bert: Path, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path)
    files = {
        "model.safetensors": (tiny_bert / "model.safetensors").read_bytes(),
        "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
    }
    source = {"type": "hub", "repo": "owner/tiny", "revision": COMMIT}
    shelf.register(wheel_source("vanished"), source, files=files)
    code = """
store = Store(Path(sys.argv[1]), registry=Path(sys.argv[2]))
folder = store.pull("small")
answer = {"files": sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*.*"))}
answer["left"] = sorted(path.name for path in store.folder.iterdir() if path.suffix != ".lock")
"""
    pip = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    answer = run(hub.environment | pip, code, tmp_path / "store", shelf.registry)
    assert answer == {"files": sorted(files), "left": ["small"]}
    assert (tmp_path / "store/small/model.safetensors").read_bytes() == files["model.safetensors"]
