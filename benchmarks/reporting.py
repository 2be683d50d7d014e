"""What the reports have in common: commands that are run once, and a text made of their results."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """A text in parts; what is there already is not made again."""

    title: str
    work: Path
    """Where artifacts, scores and results go."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Titles and texts."""

    @classmethod
    def from_command_line(cls, title: str, doc: str) -> tuple[Report, Path]:
        """The report and the folder with the data: `python this.py DATA WORK`."""
        parser = argparse.ArgumentParser(description=doc.splitlines()[0])
        parser.add_argument("data", type=Path)
        parser.add_argument("work", type=Path)
        options = parser.parse_args()
        options.work.mkdir(parents=True, exist_ok=True)
        return cls(title, options.work), options.data

    def train(
        self, metric: str, name: str, files: Sequence[tuple[str, Path]], settings: Sequence[str]
    ) -> Path:
        """The folder of an artifact that is trained here; `files` are options with paths."""
        out = self.work / name
        if not out.exists():
            words = [word for option, path in files for word in (option, str(path))]
            words += [word for setting in settings for word in ("--set", setting)]
            run_causerie("train", metric, *words, "--resume", "--out", str(out))
        return out

    def part(self, title: str, file: str, *words: str) -> None:
        """What a command writes: a name in a folder is one of several files that it puts there."""
        made = self.work / file
        if not made.exists():
            out = made.parent if "/" in file else made
            keeps = "causes" not in words
            scores = ("--scores", str(self.work / "scores.sqlite")) if keeps else ()
            run_causerie(*words, "--out", str(out), *scores)
        text = made.read_text(encoding="utf-8").rstrip()
        picture = made.with_suffix(".svg")
        if picture.exists():
            name = f"{self.work.name}-{anchor(title)}.svg"
            shutil.copy(picture, self.work / name)
            text += f"\n\n![{title}]({name})"
        self.add(title, text)

    def made(self, title: str, file: str, make: Callable[[], str]) -> None:
        """What a function says, kept like what a command writes."""
        kept = self.work / file
        if not kept.exists():
            kept.write_text(make(), encoding="utf-8")
        self.add(title, kept.read_text(encoding="utf-8"))

    def add(self, title: str, text: str) -> None:
        self.parts.append((title, text.rstrip()))

    def write(self) -> None:
        lines = [f"# {self.title}", "", *(f"- [{t}](#{slug(t)})" for t, _ in self.parts)]
        for title, text in self.parts:
            lines += ["", f"# {title}", "", text]
        (self.work / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def slug(title: str) -> str:
    """The address of a heading on its page, as Markdown's renderers make it."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def run_causerie(*words: str) -> None:
    print("causerie", *words, file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "causerie", *words], check=True, stdout=sys.stderr)
