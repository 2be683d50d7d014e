"""The notebooks run from the first cell to the last, offline, and carry no outputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel run notebooks")
nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel run notebooks")
pytest.importorskip("ipykernel", reason="nbclient and ipykernel run notebooks")


def test_there_is_one_for_each() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["analyst", "builder", "researcher"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow
@pytest.mark.default_models
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(
    path: Path, default_models: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what it writes
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    before = set(os.listdir(FOLDER))
    client = nbclient.NotebookClient(
        nbformat.read(path, as_version=4),
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    assert set(os.listdir(FOLDER)) == before
