"""Blocks of code in Markdown, and a desk with the files that they name."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "research/*.md")
    for path in ROOT.glob(pattern)
    if not path.is_symlink()
)
_EXAMPLES = ROOT / "examples" / "conversations.jsonl"
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run(?: `([^`]+)`)?: (.*?) -->\n", re.DOTALL)
_MARKERS = re.compile(r"(?:^ *<!--(?:(?!-->).)*-->\n\s*)+\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block, and what stands above and below it."""

    page: Path
    line: int
    language: str
    code: str
    markers: tuple[tuple[str, str], ...]
    """Pairs: a part of the commands that are not run (empty: the whole block), and the reason."""
    output: str | None
    """What the page says it prints: the `text` block that follows at once."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return not any(part == "" for part, _ in self.markers)

    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a `bash` block that is to be run."""
        for line in self.code.replace("\\\n", " ").splitlines():
            if any(part in line for part, _ in self.markers):
                continue
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
            lexer.whitespace_split, lexer.commenters = True, "#"
            if words := list(lexer):
                yield words


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page but those that show the output of the one above them."""
    text = page.read_text("utf-8")
    found: list[Block] = []
    matches = list(_FENCE.finditer(text))
    shown = {
        after.start()
        for before, after in pairwise(matches)
        if before[2] in ("bash", "python")
        and after[2] == "text"
        and not text[before.end() : after.start()].strip()
    }
    for n, match in enumerate(matches):
        if match.start() in shown:
            continue
        above = _MARKERS.search(text[: match.start()])
        markers = _NOT_RUN.findall(above[0]) if above else []
        follows = n + 1 < len(matches) and matches[n + 1].start() in shown
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, match.start()) + 1,
                language=match[2],
                code=re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE),
                markers=tuple((part, " ".join(reason.split())) for part, reason in markers),
                output=matches[n + 1][3] if follows else None,
            )
        )
    return found


def _lines(path: Path, records: list[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(map(json.dumps, records)) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def lay_out(folder: Path) -> None:
    """Small files under the names that documents use, cut from the examples."""
    (folder / "examples").symlink_to(_EXAMPLES.parent)
    whole = [json.loads(line) for line in _EXAMPLES.read_text("utf-8").splitlines()]
    short = [{**talk, "turns": talk["turns"][:4]} for talk in whole]
    aria, bramble = ([one for one in short if one["system"] == name] for name in SYSTEMS)
    few = [aria[0], bramble[1]]
    for name in ("chats", "conversations", "logs", "new", "dialogues", "nightly", "held_out"):
        _lines(folder / f"{name}.jsonl", few)
    _lines(folder / "logs.jsonl.gz", few)
    _lines(folder / "old.jsonl", [bramble[0], aria[1]])
    rows = ["context,response,reference"]
    for talk in few:
        first, reply = talk["turns"][:2]
        rows.append(",".join(json.dumps(t) for t in (first["text"], reply["text"], "How cold?")))
    (folder / "responses.csv").write_text("\n".join(rows).replace("\\", "") + "\n")
    judged = [
        {
            "id": f"{talk['id']}-{number}",
            "context": talk["turns"][: number - 1],
            "response": {k: talk["turns"][number - 1][k] for k in ("speaker", "text")},
            "system": talk["system"],
            "ratings": {"overall": [1 + (place + number) % 5, 1 + (2 * place + number) % 5]},
        }
        for place, talk in enumerate(short)
        for number in (2, 4)
    ]
    _lines(folder / "judged" / "mine.jsonl", judged)
    _lines(folder / "mine.jsonl", judged)


SYSTEMS = ("aria", "bramble")
