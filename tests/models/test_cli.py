from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from causerie.cli.models import models_app
from causerie.errors import CauserieError

NAMES = ("all-MiniLM-L6-v2", "SmolLM2-135M-Instruct")
LARGER = ("all-mpnet-base-v2", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")


def run(*arguments: object) -> str:
    """Return the output of `causerie models ...`, or raise its `CauserieError`."""
    result = CliRunner().invoke(models_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, CauserieError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_tells_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / NAMES[0]).mkdir()
    rows = {line.split()[0]: line for line in run("list", "--models-dir", tmp_path).splitlines()}
    assert set(rows) == {"model", *NAMES, *LARGER, "wordnet-3.1"}
    assert " yes " in rows[NAMES[0]]
    assert " no " in rows[NAMES[1]]
    assert "language model (default, default-lm)" in rows[NAMES[1]]


def test_path(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match=f"causerie models pull {NAMES[0]}"):
        run("path", NAMES[0], "--models-dir", tmp_path)
    (tmp_path / NAMES[0]).mkdir()
    assert run("path", NAMES[0], "--models-dir", tmp_path) == f"{tmp_path / NAMES[0]}\n"
    assert run("path", "default-encoder", "--models-dir", tmp_path) == f"{tmp_path / NAMES[0]}\n"
    with pytest.raises(CauserieError, match=f"default stands for {' and '.join(NAMES)}: name one"):
        run("path", "default", "--models-dir", tmp_path)
    with pytest.raises(CauserieError, match="unknown model 'defualt'; the known names are"):
        run("path", "defualt", "--models-dir", tmp_path)


def test_verify(tmp_path: Path) -> None:
    with pytest.raises(CauserieError, match="is empty: run `causerie models pull`"):
        run("verify", "--models-dir", tmp_path)
    (tmp_path / NAMES[0]).mkdir()
    with pytest.raises(CauserieError, match=r"model.safetensors is missing"):
        run("verify", "--models-dir", tmp_path)


def test_pull_that_cannot_be_done(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not the weights")
    store = tmp_path / "store"
    with pytest.raises(CauserieError, match="--offline"):
        run("pull", "--offline", "--models-dir", store)
    with pytest.raises(CauserieError, match="name it"):
        run("pull", "--from", wrong, "--models-dir", store)
    with pytest.raises(CauserieError, match="SHA-256 differs"):
        run("pull", NAMES[1], "--from", wrong, "--models-dir", store)
    with pytest.raises(
        CauserieError, match=f"{NAMES[1]} could not be taken from .*SHA-256 differs"
    ):
        run("pull", "default-lm", "--from", wrong, "--models-dir", store)
    with pytest.raises(CauserieError, match="name it"):
        run("pull", "default", "--from", wrong, "--models-dir", store)
    assert not (store / NAMES[1]).exists()


@pytest.mark.default_models
def test_pull_and_verify_the_defaults(default_models) -> None:
    folder = default_models.folder
    assert run("pull", "--offline", "--models-dir", folder).splitlines() == [
        f"{name}: {folder / name}" for name in NAMES
    ]
    assert run("pull", "default", "--offline", "--models-dir", folder).count("\n") == 2
    for names in ((), ("default",), ("default-lm", "default-encoder")):
        done = run("verify", *names, "--models-dir", folder)
        checked = [line.split(":")[0] for line in done.splitlines() if "as expected" in line]
        assert set(NAMES) <= set(checked)  # other models may be there too
        assert not names or len(checked) == 2


@pytest.mark.parametrize("command", ["list", "pull", "verify", "path"])
def test_help_has_something_to_say(command: str) -> None:
    text = run(command, "--help")
    assert "--models-dir" in text
    assert command == "list" or "Example" in text
