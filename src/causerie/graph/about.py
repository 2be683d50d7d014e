"""The description stored with a graph: its relations, its sources and how its vectors were made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from causerie._version import __version__

ABOUT = "graph.json"
FORMAT = 1


@dataclass(frozen=True)
class Source:
    """A source of edges."""

    name: str
    licence: str
    sha256: tuple[str, ...] = ()
    """SHA-256 digests of its files."""
    edges: int = 0
    """Number of its edges in the graph."""


@dataclass(frozen=True)
class About:
    """A graph's own description."""

    nodes: int
    edges: int
    relations: tuple[str, ...]
    sources: tuple[Source, ...]
    vectors: str = ""
    """How the vectors were made; empty if there are none."""
    format: int = FORMAT
    version: str = field(default=__version__)
    """Version of causerie that built the graph."""

    def write(self, folder: Path) -> None:
        (folder / ABOUT).write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def of(cls, content: dict[str, Any]) -> About:
        """Parse a graph.json; raise ValueError if this version cannot read it."""
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"it has format {content['format']}")
            sources = [
                Source(**(source | {"sha256": tuple(source["sha256"])}))
                for source in content.pop("sources")
            ]
            relations = tuple(map(str, content.pop("relations")))
            if not all(type(content[key]) is int for key in ("nodes", "edges")):
                raise ValueError("nodes and edges must be counts")
            return cls(relations=relations, sources=tuple(sources), **content)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"graph.json is damaged ({type(error).__name__}: {error})") from error
