"""The site of the documents: every link leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def site_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / "docs" / "_site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_it_is_built_and_loads_nothing(tmp_path: Path) -> None:
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name, reason="`make docs` needs it: pip install 'causerie[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(site_module().foreign(tmp_path)) == []
    reference = (tmp_path / "api.html").read_text("utf-8")
    for name in ("evaluate", "Result", "Dialogue", "Metric", "Plan", "assert_better"):
        assert f".{name}" in reference
    assert "unpkg" not in reference  # the theme would load mermaid for a diagram
    assert 'class="mermaid"' not in "".join(p.read_text("utf-8") for p in tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    "loads",
    [
        '<script async src="https://a.example/x.js"></script>',
        "<img alt='' src='//a.example/x.png'>",
        '<link rel="stylesheet" href="https://a.example/x.css">',
        '<link href="https://a.example" rel="preconnect">',
        "<style>@import 'https://a.example/x.css';</style>",
        "<style>a { background: url(https://a.example/x.png) }</style>",
    ],
)
def test_what_a_page_would_load_is_found(loads: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<p>{loads}<a href='https://b.example'>fine</a>")
    (found,) = site_module().foreign(tmp_path)
    assert found.startswith(("page.html: https://a.example", "page.html: //a.example"))
