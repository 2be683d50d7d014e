"""Self-contained HTML pages: a template, one style, one script, and no external resources."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from importlib import resources
from string import Template

from causerie.text.masking import mask

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that are not text: controls except tab and line ends, and bidirectional overrides."""


def part(package: str, file: str) -> str:
    """Return the text of a file that lies beside the code of a page."""
    return resources.files(package).joinpath(file).read_text("utf-8")


def fill(package: str, *, title: str, data: str, drawn: bool = False, **fields: str) -> str:
    """Return the page whose body is the package's `page.html` with its fields filled in.

    Its style is ours and the package's `page.css`; its script is the package's `page.js`, which
    finds `data` (see `data_block`) in the page, preceded by our `drawings.js` if the page is
    `drawn`. `title` is escaped here, the other fields are HTML. The Content-Security-Policy
    names style and script by hash, so nothing else can run.
    """
    title = shown(title)
    body = Template(part(package, "page.html")).substitute(title=escape(title), **fields)
    script = part(package, "page.js")
    if drawn:
        script = part("causerie.render", "drawings.js").rpartition("export {")[0] + script
    return _page(title, body.strip(), part(package, "page.css"), script, data)


def plain_page(title: str, sections: Mapping[str, str]) -> str:
    """Return a page without a script: HTML under headings, both already escaped."""
    title = shown(title)
    parts = [f"<section><h2>{name}</h2>\n{body}</section>" for name, body in sections.items()]
    head = f"<header><h1>{escape(title)}</h1></header>"
    return _page(title, "\n".join([head, "<main>", *parts, "</main>"]), "", "", "null")


def _page(title: str, body: str, css: str, script: str, data: str) -> str:
    style = part("causerie.render", "page.css") + css
    page = Template(part("causerie.render", "shell.html")).substitute(
        title=escape(title),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        body=body,
        data=data,
    )
    return _CONTROLS.sub("�", page)


def shown(text: str) -> str:
    """Return foreign text made safe to show: obscenities masked, control characters replaced."""
    return _CONTROLS.sub("�", mask(text))


def data_block(value: object) -> str:
    r"""Return ASCII JSON without the characters that could end or change a script element.

    Every non-ASCII character is already a \u escape (U+2028 and lone surrogates among them), and
    every text in it has passed through `shown`.
    """
    text = json.dumps(all_shown(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def outside(text: str) -> str:
    """Return a foreign name as HTML, isolated so that its writing direction stays its own."""
    return f"<bdi>{escape(shown(text))}</bdi>"


def column_name(name: str, *, higher_is_better: bool | None, sentinel: bool) -> str:
    """Return the HTML name of a score column, with its direction if it has one."""
    tag = ' <span class="tag">sentinel</span>' if sentinel else ""
    shown = f'<span class="metric">{outside(name)}</span>'
    if higher_is_better is None:
        return shown + tag
    words = "higher is better" if higher_is_better else "lower is better"
    arrow = "↑" if higher_is_better else "↓"
    return (
        f'{shown} <span class="arrow" role="img" title="{words}" aria-label="{words}">{arrow}'
        f"</span>{tag}"
    )


def all_shown(value: object) -> object:
    """Return plain data with every text in it passed through `shown`."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(str(key)): all_shown(item) for key, item in value.items()}
    return [all_shown(item) for item in value] if isinstance(value, (list, tuple)) else value


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
