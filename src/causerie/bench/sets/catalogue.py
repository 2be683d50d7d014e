"""The catalogue of judged sets: what each is, where it is published, and how its file is found.

The facts are in `catalogue.json`; other sets of the same format work as well, with the defaults
below.
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
"""Names by which sets denote human-written responses."""


@dataclass(frozen=True)
class SetEntry:
    """What is known about one set."""

    name: str
    """Name of the set and of its file, `NAME.jsonl` or `NAME.jsonl.gz`."""
    title: str
    level: SetLevel
    items: int
    licence: str
    paper: str
    url: str
    """Where the official file is published."""
    files: tuple[str, ...] = ()
    """Published files that `convert` turns into this set; empty if it has no converter."""
    dimensions: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    """Judged dimensions, each with the ends of its scale (None for a choice, not a number)."""
    main: str | None = None
    """The dimension reported by default."""
    human_systems: tuple[str, ...] = HUMAN_SYSTEMS
    default: bool = False
    """Whether a benchmark run includes it by default."""
    control: bool = False
    """Whether an attack changes nothing of substance, so that a metric should not punish it."""
    dialogue_id: str | None = None
    """Regular expression whose first group is the dialogue's part of an item's id."""
    corpus: str | None = None
    """Corpus of its contexts; metrics trained on that corpus have seen them."""
    notes: tuple[str, ...] = ()
    family: str | None = None
    """Group of sets that share contexts or systems, never split between training and testing."""
    learn: Terms = "research"
    """Who may learn from its judgements (see `causerie.training.judgements`)."""
    unreliable: str | None = None
    """Why the published judgements cannot support any correlation; None if they can."""

    def is_human(self, system: str | None) -> bool:
        """Return whether the responses of this system were written by people."""
        return system is not None and _plain(system) in {_plain(s) for s in self.human_systems}

    def how_to_get(self) -> str:
        """Return in one clause where it is published and how to convert it."""
        if not self.files:
            return f"it is published at {self.url}; convert it to the format of docs/judged-sets.md"
        return (
            f"get {' and '.join(self.files)} from {self.url} and run "
            f"`causerie bench convert {self.name}` on it"
        )


@cache
def catalogue() -> Mapping[str, SetEntry]:
    """Return every known set by name."""
    text = files("causerie.bench.sets").joinpath("catalogue.json").read_text(encoding="utf-8")
    return {name: _entry(name, facts) for name, facts in json.loads(text).items()}


def entry_for(name: str) -> SetEntry:
    """Return the entry of a set; one that is not in the catalogue gets the defaults."""
    return catalogue().get(name) or SetEntry(
        name, name, "turn", 0, "unknown", "unknown", "unknown", notes=("not in the catalogue",)
    )


def default_sets() -> tuple[str, ...]:
    """Return the sets of a benchmark run that names none."""
    return tuple(entry.name for entry in catalogue().values() if entry.default)


def find_set(name: str, folder: str | Path) -> Path:
    """Return the file of a set: `NAME.jsonl[.gz]` in the folder, its `judged` or `adversarial`."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CauserieError(f"there is no folder {folder}: name the one with the judged sets")
    for place in (folder, folder / "judged", folder / "adversarial"):
        for suffix in (".jsonl", ".jsonl.gz"):
            path = place / f"{name}{suffix}"
            # A name that escapes the folder ("../x") is never a set.
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
    # JSON has no tuples; all other lists contain strings.
    others: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
    return SetEntry(name=name, dimensions=dimensions, **others)


def _plain(system: str) -> str:
    return system.casefold().replace("-", " ").replace("_", " ").strip()
