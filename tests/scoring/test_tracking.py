"""What trackers are handed, by stand-ins that take only what the real ones take."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from causerie.errors import CauserieError
from causerie.scoring.tracking import check_tracker
from terminal import run_causerie

KEPT: dict[str, Any] = {}


def install(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
    module.__dict__.update(functions)
    monkeypatch.setitem(sys.modules, name, module)
    KEPT.clear()


def keep_metrics(figures: dict[str, float]) -> None:
    for name, value in figures.items():
        assert re.fullmatch(r"[\w\-. /]+", name, re.ASCII)
        # MLflow's files: a name is a path, and none is a folder
        assert posixpath.normpath(name) == name
        assert not any(other.startswith(f"{name}/") for other in figures)
        assert isinstance(value, float)
    KEPT.update(figures)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    turns = [{"speaker": "user", "text": "hi"}, {"speaker": "bot", "text": "hello there"}]
    lines = [{"id": s, "system": s, "turns": turns[:1] + turns} for s in ("ä<b>", "aria", "..")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_mlflow(monkeypatch: pytest.MonkeyPatch, chats: Path, tmp_path: Path) -> None:
    @contextmanager
    def start_run(run_name: str) -> Iterator[None]:
        KEPT["name"] = run_name
        yield
        KEPT["ended"] = True

    install(
        monkeypatch,
        "mlflow",
        start_run=start_run,
        set_tags=lambda tags: KEPT.update(tags=tags),
        log_metrics=keep_metrics,
        log_artifact=lambda path: KEPT.update(file=path),
    )
    out = tmp_path / "out.csv"
    done = run_causerie("score", chats, "-m", "length", "--out", out, "--log", "mlflow")
    assert done.returncode == 0, done.stderr
    assert KEPT["name"] == "chats.jsonl"
    assert (KEPT["length"], KEPT["length by system/aria"]) == (2.0, 2.0)
    assert (KEPT["length by system/__b_"], KEPT["length by system/_"]) == (2.0, 2.0)
    assert (KEPT["items"], KEPT["length.unscored"]) == (3.0, 0.0)
    assert KEPT["tags"]["signature"].startswith("causerie|")
    assert KEPT["file"] == str(out)
    assert KEPT["ended"]


def test_wandb_that_fails_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, chats: Path, tmp_path: Path
) -> None:
    def init(**given: Any) -> None:
        KEPT.update(given)
        raise ConnectionError("no way\nthere")

    install(monkeypatch, "wandb", init=init)
    out = tmp_path / "out.jsonl"
    done = run_causerie("score", chats, "-m", "length", "--out", out, "--log", "wandb")
    assert done.returncode == 2
    assert "all is scored and written, but wandb did not keep it (ConnectionError: no way)" in (
        done.stderr
    )
    assert len(out.read_text().splitlines()) == 3
    assert KEPT["config"]["metrics"] == "length"


def test_wandb(monkeypatch: pytest.MonkeyPatch, chats: Path, tmp_path: Path) -> None:
    @contextmanager
    def init(*, name: str, config: dict[str, str], job_type: str) -> Iterator[SimpleNamespace]:
        KEPT.update(name=name, config=config, job=job_type)
        yield SimpleNamespace(log=keep_metrics, save=save)
        KEPT["ended"] = True

    def save(path: str, base_path: str) -> None:
        KEPT["file"] = str(Path(path).relative_to(base_path))

    install(monkeypatch, "wandb", init=init)
    out = tmp_path / "out.csv"
    done = run_causerie("score", chats, "-m", "length", "--out", out, "--log", "wandb")
    assert done.returncode == 0, done.stderr
    assert (KEPT["name"], KEPT["file"], KEPT["ended"]) == ("chats.jsonl", "out.csv", True)
    assert (KEPT["length"], KEPT["length by system/aria"]) == (2.0, 2.0)
    assert KEPT["config"]["signature"].startswith("causerie|")


def test_what_is_missing_is_said_before_anything_is_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("causerie.scoring.tracking.find_spec", lambda name: None)
    with pytest.raises(CauserieError, match="pip install mlflow"):
        check_tracker("mlflow")
    with pytest.raises(CauserieError, match="use mlflow or wandb"):
        check_tracker("excel")
