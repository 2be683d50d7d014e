"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.default_models
def test_python_example_prints_what_it_says(default_models: object) -> None:
    code, output = re.search(
        r"```python\n(.*?)```\s*```text\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    ).groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == output


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text("utf-8")):
        assert (README.parent / link).exists(), link
