"""Edges, the form to which every source of a graph is reduced, and the reading of their files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from causerie.errors import CauserieError, RecordError
from causerie.io.sources import READ_ERRORS, open_source
from causerie.progress import Watch, counting, ignore

SYMMETRIC = frozenset(
    [
        "AnsweredWith",
        "Antonym",
        "DistinctFrom",
        "EtymologicallyRelatedTo",
        "LocatedNear",
        "RelatedTo",
        "SimilarTo",
        "Synonym",
    ]
)
"""Symmetric relations: which end is the head has no meaning."""

_OFTEN = 1 << 12


class Edge(NamedTuple):
    """One relation between two words: `dog` `IsA` `animal`."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0


def within(edges: Iterable[Edge], words: Container[str]) -> Iterator[Edge]:
    """Return only the edges between these words."""
    return (edge for edge in edges if edge.head in words and edge.tail in words)


def lines(path: Path, advice: str, watch: Watch = ignore) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered, non-blank lines of a file, gzipped or not, without line ends.

    Any fault raises an error that names the file and the line and gives `advice`.
    """
    told = counting(watch, f"reading {path.name}", "bytes")
    with open_source(str(path)) as source:
        try:
            for number, line in source.lines():
                if number % _OFTEN == 1:
                    told(source.position(), path.stat().st_size)
                if isinstance(line, RecordError):
                    raise bad_line(path, number, str(line), advice)
                if stripped := line.rstrip(b"\r\n"):
                    yield number, stripped
        except READ_ERRORS as error:
            raise bad_line(path, source.line + 1, f"cannot be read ({error})", advice) from error
        told(source.position(), path.stat().st_size)


def bad_line(path: Path, number: int, reason: str, advice: str) -> CauserieError:
    return CauserieError(f"{path}:{number}: {reason}: {advice}")
