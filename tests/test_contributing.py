"""The metric that CONTRIBUTING.md shows: really installed, as another package, and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TALK = {"id": "d", "turns": [{"speaker": "A", "text": "Hi."}, {"speaker": "B", "text": "You? Me?"}]}


def shown(language: str) -> str:
    """The one block of code of that language in the part about metrics."""
    part = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Add a metric in one file")[1]
    (block,) = re.findall(rf"```{language}\n(.*?)```", part, flags=re.DOTALL)
    return str(block)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    package = source / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "questions.py").write_text(shown("python"))
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "my-package"\nversion = "1.0"\n'
        '[tool.setuptools]\npackages = ["my_package"]\n' + shown("toml")
    )
    pytest.importorskip("setuptools", reason="setuptools builds the package")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--disable-pip-version-check", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    return target


def causerie(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-m", "causerie", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_listed(installed: Path) -> None:
    done = causerie(installed, "metrics")
    assert done.returncode == 0, done.stderr
    assert "questions" in done.stdout


def test_it_scores_with_its_options(installed: Path, tmp_path: Path) -> None:
    talks = tmp_path / "talks.jsonl"
    talks.write_text(json.dumps(TALK) + "\n")
    out = tmp_path / "scores.jsonl"
    arguments = ["score", str(talks), "--metrics", "questions,bangs=questions:mark=e"]
    done = causerie(installed, *arguments, "--out", str(out))
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert (row["questions.count"], row["questions.share"]) == (2.0, 0.25)
    assert row["bangs.count"] == 1.0
    assert "my-package 1.0@" in done.stderr, "the signature names the package and its code"
