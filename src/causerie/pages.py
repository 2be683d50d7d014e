"""Self-contained HTML pages: a template, one style, one script, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from string import Template


def part(package: str, file: str) -> str:
    """A file that lies beside the code which draws the page."""
    return resources.files(package).joinpath(file).read_text("utf-8")


def fill(package: str, **fields: str) -> str:
    """The package's `page.html` with its fields, `page.css` and `page.js`.

    Its Content-Security-Policy names style and script by hash, so nothing else can run.
    """
    style, script = part(package, "page.css"), part(package, "page.js")
    return Template(part(package, "page.html")).substitute(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        **fields,
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
