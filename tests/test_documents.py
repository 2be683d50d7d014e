"""Every block of code in README and docs runs here, or says why it does not.

A block that cannot run has a comment above it that no reader sees:

    <!-- not run: trains for an hour -->
    <!-- not run `bench reproduce`: needs published data -->    (only commands that contain this)

A page's blocks run one after the other in a folder with small files under the names that documents
use (`documents.lay_out`). A `text` block right below a block is what that block prints.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from documents import PAGES, ROOT, Block, blocks_of, lay_out
from terminal import run_causerie

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LANGUAGES = {"yaml", "bash", "python", "toml", "json", "text", ""}
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
RUN = {"bash", "python"}


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_blocks_say_what_they_are(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{block.place}: unknown language {block.language!r}"
        if block.language in ("", "text"):
            command = re.search(r"^(causerie (?!\d)|pip |make |python )\S+", block.code, re.M)
            assert not command, f"{block.place}: commands belong into a block of bash"
        for part, reason in block.markers:
            assert len(reason.split()) >= 3, f"{block.place}: say why it is not run"
            assert part in block.code, f"{block.place}: nothing contains {part!r}"


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if re.match(r"https?://|mailto:", link):
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{names(page)}: {link}"
        if anchor and target.suffix == ".md":
            heads = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            assert anchor in {slug(head) for head in heads}, f"{names(page)}: {link}"


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=str)
def test_toml_is_toml(block: Block) -> None:
    assert tomllib.loads(block.code)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "json"], ids=str)
def test_json_is_json(block: Block) -> None:
    decoder, rest = json.JSONDecoder(), block.code.strip()
    while rest and block.runs:
        _, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()


@pytest.mark.default_models
@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.language in RUN and b.runs for b in blocks_of(p))], ids=names
)
def test_blocks_run(
    page: Path,
    default_models: object,
    tiny_judge: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look up their module
    for block in blocks_of(page):
        if block.language not in RUN or not block.runs:
            continue
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.code, block.place, "exec"), module.__dict__)
            output = printed.getvalue()
        else:
            output = "".join(run(block, words, tiny_judge) for words in block.commands())
        if block.output is not None:
            same = doctest.OutputChecker().check_output(
                block.output, output, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            assert same, f"{block.place} prints something else:\n{output}"


def stand_in(arguments: list[str], model: Path) -> list[str]:
    """Options that put a tiny language model in the place of the default, which takes minutes."""
    if arguments[0] != "score" or "--metrics" not in arguments:
        return []
    asked = set(re.split(r"[,:]", arguments[arguments.index("--metrics") + 1]))
    if "judge" in asked and "--judge-model" not in arguments:
        return ["--judge-model", str(model)]
    if asked & {"fed", "cpmi", "papers", "perplexity", "relevance"} and "--lm" not in arguments:
        return ["--lm", str(model)]
    return []


def run(block: Block, words: list[str], model: Path) -> str:
    """Run a command, or check that what it would set up exists; return what it prints."""
    match words:
        case ["causerie", "models", *_]:
            pass  # default_models did it
        case ["causerie", *arguments]:
            done = run_causerie(*arguments, *stand_in(arguments, model))
            allowed = (0, 3) if "--fail-if" in arguments else (0,)
            assert done.returncode in allowed, f"{block.place}: {words}\n{done.stderr}"
            told = done.stderr.splitlines(keepends=True)  # summaries leave stdout to rows
            return done.stdout + "".join(s for s in told if not s.startswith("causerie: "))
        case ["make", target, *_]:
            targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert target in " ".join(targets).split(), f"{block.place}: no make {target}"
        case ["pip" | ".venv/bin/pip", "install", *packages]:
            for package in packages:
                extras = re.match(r"(?:causerie|\.)\[(.+)\]$", package)
                for extra in extras[1].split(",") if extras else ():
                    assert extra in PROJECT["project"]["optional-dependencies"], block.place
        case [".venv/bin/pytest", *_]:
            pass  # that is what runs here
        case ["python" | ".venv/bin/python", script, *_]:
            assert (ROOT / script).is_file(), f"{block.place}: no {script}"
        case _:
            pytest.fail(f"{block.place}: cannot run {words}; say above the block why it is not run")
    return ""
