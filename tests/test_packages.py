"""Wheels work alone, and what an extra would bring is named where it is missing.

The wheels are built and installed into an empty environment. What they depend on is not fetched but
lent by the environment of the tests: all its packages but causerie's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "scores.json"
MEGABYTES = 60


def build(source: Path, names: tuple[str, ...], folder: Path) -> Path:
    """Build a wheel of a copy, as building leaves folders behind."""
    copy = folder / "source"
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source / name, copy / name, ignore=skip)
        else:
            shutil.copy(source / name, copy / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*command, str(copy)], check=True, capture_output=True)
    shutil.rmtree(copy)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel of causerie and that of causerie-research."""
    pytest.importorskip("setuptools", reason="setuptools builds the wheels")
    own = ("src", "pyproject.toml", "README.md", "LICENSE", "NOTICE")
    research = ("src", "pyproject.toml", "README.md", "LICENSES")
    return (
        build(ROOT, own, tmp_path_factory.mktemp("wheel")),
        build(ROOT / "research", research, tmp_path_factory.mktemp("research")),
    )


@pytest.fixture(scope="module")
def python(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment into which only the wheel of causerie is installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=False)
    lent = folder / "lent"
    lent.mkdir()
    for path in {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}:
        for one in path.iterdir():
            if not one.name.lower().startswith(("causerie", "__editable__", "__pycache__")):
                (lent / one.name).symlink_to(one)
    (site,) = (folder / "venv").rglob("site-packages")
    (site / "lent.pth").write_text(f"{lent}\n")
    python = folder / "venv" / "bin" / "python"
    install(python, wheels[0])
    return python


def install(python: Path, wheel: Path) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, env=alone())


def alone() -> dict[str, str]:
    """The environment without what leads to this repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def causerie(python: Path, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-m", "causerie", *map(str, words)],
        cwd=folder,
        env=alone(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_wheel_is_small_and_has_its_licences(wheels: tuple[Path, Path]) -> None:
    own, research = wheels
    size = own.stat().st_size / 1e6
    print(f"{own.name}: {size:.1f} MB, {research.name}: {research.stat().st_size / 1e6:.1f} MB")
    assert size <= MEGABYTES
    licences = {Path(n).name for n in zipfile.ZipFile(own).namelist() if "/licenses/" in n}
    assert licences == {"LICENSE", "NOTICE"}
    names = zipfile.ZipFile(research).namelist()
    metadata = next(name for name in names if name.endswith("METADATA"))
    terms = zipfile.ZipFile(research).read(metadata).decode()
    assert "License-Expression: CC-BY-NC-SA-4.0 AND LicenseRef-Research-Only" in terms
    for text in ("CC-BY-NC-SA-4.0.txt", "LicenseRef-Research-Only.txt"):
        assert any(name.endswith(f"licenses/LICENSES/{text}") for name in names), text


@pytest.mark.slow
@pytest.mark.default_models
def test_the_wheel_alone_gives_the_numbers_of_the_golden_file(
    python: Path, default_models: object, tmp_path: Path
) -> None:
    cases = json.loads(GOLDEN.read_text("utf-8"))
    case = next(c for c in cases if (c["input"], c["level"]) == ("examples", "dialogue"))
    shutil.copy(ROOT / "examples" / "conversations.jsonl", tmp_path)
    done = causerie(
        *(python, tmp_path, "score", "conversations.jsonl", "--metrics", case["metrics"]),
        *("--level", "dialogue", "--speaker", case["speaker"], "--offline"),
        *("--out", "scores.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["dialogue_id"] for row in rows] == [name for name, _ in case["rows"]]
    for column, expected in case["columns"].items():
        if not column.endswith(".percentile"):
            found = [row[column] for row in rows]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=column)
    words = ("score", "conversations.jsonl", "--metrics", "cosine", "--report", "page.html")
    done = causerie(python, tmp_path, *words, "--offline")
    assert done.returncode == 0, done.stderr
    assert "<!doctype html>" in (tmp_path / "page.html").read_text("utf-8").lower()


@pytest.mark.slow
@pytest.mark.default_models
def test_the_research_wheel_adds_its_variants(
    python: Path, wheels: tuple[Path, Path], default_models: object, tmp_path: Path
) -> None:
    before = causerie(python, tmp_path, "metrics", "density")
    assert before.returncode == 0, before.stderr
    assert "density-dailydialog" not in before.stdout
    install(python, wheels[1])
    assert "density-dailydialog" in causerie(python, tmp_path, "metrics", "density").stdout
    (tmp_path / "chat.txt").write_text("A: My dog is ill.\nB: What is wrong with your dog?\n")
    words = ("score", "chat.txt", "--metrics", "density,grade", "--research", "--offline")
    done = causerie(python, tmp_path, *words)
    assert done.returncode == 0, done.stderr


WITHOUT = "import sys; sys.modules[{!r}] = None; from causerie.cli import main; main()"


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("fastapi", ["serve"], "causerie[server]"),
        ("sqlalchemy", ["annotate", "status", "study.db"], "causerie[server]"),
        ("duckdb", ["serve", "."], "causerie[server]"),
        ("pg8000", ["annotate", "status", "postgresql://a:b@localhost/c"], "causerie[postgresql]"),
        ("ray", ["score", "chat.txt", "--runner", "ray", "--out", "out"], "causerie[ray]"),
        ("mlflow", ["score", "chat.txt", "--log", "mlflow", "--out", "out.csv"], "mlflow"),
    ],
)
def test_what_is_missing_is_one_sentence(
    package: str, words: list[str], extra: str, tmp_path: Path
) -> None:
    if package == "pg8000":
        pytest.importorskip("sqlalchemy", reason="the server's packages come before it")
    (tmp_path / "chat.txt").write_text("A: Hello there.\nB: Hello to you.\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    assert "pip install" in sentence
    assert extra in sentence
