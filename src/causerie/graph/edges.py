"""What every source of a graph is reduced to."""

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
"""Relations that say the same of both ends: which is the head has no meaning."""

_OFTEN = 1 << 12


class Edge(NamedTuple):
    """`dog` `IsA` `animal`."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0


def within(edges: Iterable[Edge], words: Container[str]) -> Iterator[Edge]:
    """Only the edges between these words."""
    return (edge for edge in edges if edge.head in words and edge.tail in words)


def lines(path: Path, advice: str, watch: Watch = ignore) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of a file, gzipped or not, without their ends; blank ones are skipped.

    Whatever is wrong with the file is an error that names it, the line, and `advice`.
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
