"""Pages of the site that stand elsewhere in the repository: a hook of mkdocs (`make docs`).

As a command, `python docs/_site.py FOLDER` refuses a site whose pages load anything from elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    from mkdocs.structure.files import File, Files
except ImportError:  # the check below needs none of it
    File = Files = Any

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "research/README.md": "research.md",
}
PLAIN = {"NOTICE": "notice.txt", "LICENSE": "licence.txt"}


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages, and the files that they link to."""
    for source, name in PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, name, content=relinked(text, Path(source).parent)))
    for source, name in PLAIN.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links that leave the folder `docs` to where the site has their target."""
    if page.file.src_uri in PAGES.values():
        return markdown
    return relinked(markdown, Path("docs"))


def relinked(text: str, folder: Path) -> str:
    """The text of a page in `folder` with links as they are on the site."""

    def moved(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        if re.match(r"\w+:", path) or not path:
            return link[0]
        target = (ROOT / folder / path).resolve().relative_to(ROOT)
        named = PAGES.get(str(target)) or PLAIN.get(str(target))
        if target.parts[0] == "docs":
            named = str(target.relative_to("docs"))
        return f"]({named or path}{anchor})"

    return re.sub(r"\]\(([^)\s#]*)(#[^)\s]*)?\)", moved, text)


_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)=["']?"""
    r"""((?:https?:)?//[^"'\s>]+)|<link\b(?=[^>]*\brel=["']?"""
    r"""(?:stylesheet|preload|preconnect|dns-prefetch|icon|modulepreload|prefetch))"""
    r"""[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)""",
    re.IGNORECASE,
)
_STYLED = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


def foreign(site: Path) -> Iterator[str]:
    """What the pages and styles of a site would load from elsewhere."""
    for page in sorted(site.rglob("*")):
        if page.suffix in (".html", ".css"):
            text = page.read_text("utf-8")
            found = [a or b for a, b in _LOADED.findall(text)] + _STYLED.findall(text)
            yield from (f"{page.relative_to(site)}: {address}" for address in found)


if __name__ == "__main__":
    if told := list(foreign(Path(sys.argv[1]))):
        sys.exit("loaded from elsewhere:\n" + "\n".join(told))
