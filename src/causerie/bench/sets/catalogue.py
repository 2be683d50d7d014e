"""The sets this bench knows: what each is, where it is published, and where it lies on disk.

The facts are in `catalogue.json`; sets of the same shape that are not in it work as well, with
the defaults below.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from causerie.errors import CauserieError
from causerie.training.judgements import Terms

SetLevel: TypeAlias = Literal["turn", "dialogue", "pair", "attack"]

HUMAN_SYSTEMS = ("human", "ground-truth", "Original Ground Truth", "New Human Generated")
"""Names under which sets list responses written by people."""


@dataclass(frozen=True)
class SetEntry:
    """What is known about one set."""

    name: str
    """Also the name of its file: `NAME.jsonl` or `NAME.jsonl.gz`."""
    title: str
    level: SetLevel
    items: int
    licence: str
    paper: str
    url: str
    """Where the official file is published."""
    files: tuple[str, ...] = ()
    """The published files that `convert` turns into this set; empty if it has no converter."""
    dimensions: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    """What people judged, each with the ends of its scale (None: a choice, not a number)."""
    main: str | None = None
    """The dimension to report when only one is asked for."""
    human_systems: tuple[str, ...] = HUMAN_SYSTEMS
    default: bool = False
    """Whether a benchmark run takes it unless told otherwise."""
    control: bool = False
    """An attack that changes nothing of substance: a metric should not punish it."""
    dialogue_id: str | None = None
    """Regular expression whose first group is the dialogue's part of an item's id."""
    corpus: str | None = None
    """The corpus that its contexts are from: what learned from it is no stranger to them."""
    notes: tuple[str, ...] = ()
    family: str | None = None
    """Sets with contexts or systems in common: nobody learns from one and is tested on another."""
    learn: Terms = "research"
    """Who may learn from its judgements (see `causerie.training.judgements`)."""
    unreliable: str | None = None
    """Why the published judgements cannot support any correlation; None if they can."""

    def is_human(self, system: str | None) -> bool:
        """Whether the responses of this system were written by people."""
        return system is not None and _plain(system) in {_plain(s) for s in self.human_systems}

    def how_to_get(self) -> str:
        """One clause: where it is published and how to bring it into shape."""
        if not self.files:
            return f"it is published at {self.url}; bring it into the shape of docs/judged-sets.md"
        return (
            f"get {' and '.join(self.files)} from {self.url} and run "
            f"`causerie bench convert {self.name}` on it"
        )


@cache
def catalogue() -> Mapping[str, SetEntry]:
    """Every known set by name."""
    text = files("causerie.bench.sets").joinpath("catalogue.json").read_text(encoding="utf-8")
    return {name: _entry(name, facts) for name, facts in json.loads(text).items()}


def entry_for(name: str) -> SetEntry:
    """The set of that name; a stranger gets an entry with the defaults."""
    return catalogue().get(name) or SetEntry(
        name, name, "turn", 0, "unknown", "unknown", "unknown", notes=("not in the catalogue",)
    )


def default_sets() -> tuple[str, ...]:
    """The sets of a benchmark run that names none."""
    return tuple(entry.name for entry in catalogue().values() if entry.default)


def find_set(name: str, folder: str | Path) -> Path:
    """The file of a set: `NAME.jsonl[.gz]` in the folder or its `judged` or `adversarial`."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CauserieError(f"there is no folder {folder}: name the one that holds the judged sets")
    for place in (folder, folder / "judged", folder / "adversarial"):
        for suffix in (".jsonl", ".jsonl.gz"):
            path = place / f"{name}{suffix}"
            # A name that reaches out of the folder ("../x") is nobody's set.
            if path.parent == place and path.is_file():
                return path
    entry = catalogue().get(name)
    if entry is not None:
        raise CauserieError(f"the set {name!r} is not in {folder}: {entry.how_to_get()}")
    near = difflib.get_close_matches(name, catalogue(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "see `causerie bench sets`"
    raise CauserieError(f"there is no set {name!r}: {hint}")


def _entry(name: str, facts: dict[str, Any]) -> SetEntry:
    scales = facts.pop("dimensions", {})
    dimensions = {d: None if ends is None else (ends[0], ends[1]) for d, ends in scales.items()}
    # JSON has no tuples; every other list is one of strings.
    others: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
    return SetEntry(name=name, dimensions=dimensions, **others)


def _plain(system: str) -> str:
    return system.casefold().replace("-", " ").replace("_", " ").strip()
