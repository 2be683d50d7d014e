"""A little of every part of `make torture`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[1] / "benchmarks" / "torture"


def torture(part: str, encoder: object) -> None:
    words = ["--short", "--seed", "7", "--only", part, "--encoder", str(encoder)]
    done = subprocess.run(
        [sys.executable, TORTURE, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("part", ["kills", "fuzz", "company", "changing", "disks", "pages"])
def test_a_little_of(part: str, tiny_bert: Path) -> None:
    torture(part, tiny_bert)


@pytest.mark.slow
@pytest.mark.default_models
def test_a_little_tampering(default_models: object) -> None:
    torture("tampering", "default")
