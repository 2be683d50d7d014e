"""Data by name: what comes with causerie, and what other packages add to it.

A package adds artifacts and graphs with an entry point in the group `causerie.artifacts`, which
names a module with folders `artifacts` and `graphs` beside it. None of its code is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

GROUP = "causerie.artifacts"


def shipped_folder(kind: str, name: str, marker: str) -> Path | None:
    """The folder of that name among those of a kind; it has a file `marker`. A path is no name."""
    if name in ("", ".", "..") or Path(name).name != name:
        return None
    folders = (root / kind / name for root in _roots())
    return next((folder for folder in folders if (folder / marker).is_file()), None)


def shipped_names(kind: str, marker: str) -> list[str]:
    """The names of all folders of a kind, sorted."""
    found = (file.parent.name for root in _roots() for file in root.glob(f"{kind}/*/{marker}"))
    return sorted(set(found))


def _roots() -> Iterator[Path]:
    """The folder of causerie, then those of other packages, which cannot take its names."""
    yield Path(__file__).parents[1]
    for module in sorted({entry.module for entry in entry_points(group=GROUP)}):
        spec = find_spec(module) if "." not in module else None
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent
