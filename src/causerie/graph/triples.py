"""Reader of triples as JSONL: `{"head": "dog", "rel": "IsA", "tail": "animal", "weight": 2.0}`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from causerie.errors import RecordError
from causerie.graph.edges import Edge, bad_line, lines
from causerie.io.jsontext import parse_object
from causerie.io.records import text
from causerie.progress import Watch, ignore

_ADVICE = 'write {"head": ..., "rel": ..., "tail": ..., "weight": ...} on every line'


def read_triples(
    path: Path, relations: Collection[str] = (), watch: Watch = ignore
) -> Iterator[Edge]:
    """Yield one edge per line; the weight may be missing or null, other fields are ignored."""
    for number, line in lines(path, _ADVICE, watch):
        try:
            fields = parse_object(line)
            if isinstance(fields, RecordError):
                raise fields
            edge = _edge(fields)
        except RecordError as bad:
            raise bad_line(path, number, str(bad), _ADVICE) from None
        if not relations or edge.relation in relations:
            yield edge


def _edge(fields: Mapping[str, object]) -> Edge:
    head, relation, tail = (text(fields.get(name), name) for name in ("head", "rel", "tail"))
    weight = fields.get("weight")
    if weight is None:
        weight = 1.0
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not _is_finite(weight):
        raise RecordError("weight must be a finite number")
    return Edge(head.lower(), relation, tail.lower(), float(weight))


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer of hundreds of digits
        return False
