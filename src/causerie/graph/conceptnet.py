"""Readers of ConceptNet's dump of assertions and of Numberbatch, its word vectors."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Container, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from causerie.graph.edges import Edge, bad_line, lines
from causerie.progress import Watch, ignore

LICENCE = "CC BY-SA 4.0"
_DUMP = "give ConceptNet's dump, conceptnet-assertions-5.7.0.csv.gz or another version"
_NUMBERBATCH = "give Numberbatch's text file, numberbatch-en-19.08.txt.gz or another version"


def read_assertions(
    path: Path,
    language: str = "en",
    relations: Collection[str] = (),
    watch: Watch = ignore,
) -> Iterator[Edge]:
    """Yield the edges between words of one language, of all relations unless some are named.

    The dump has five columns separated by tabs: the assertion, the relation, the start, the end,
    and JSON with the weight. Only the word of `/c/en/run/v/wn/motion` is used, not its sense.
    """
    prefix = f"/c/{language}/".encode()
    wanted = {f"/r/{relation}".encode() for relation in relations}
    for number, line in lines(path, _DUMP, watch):
        columns = line.split(b"\t")
        if len(columns) != 5:
            raise bad_line(path, number, f"has {len(columns)} columns, not 5", _DUMP)
        _, relation, start, end, details = columns
        if not relation.startswith(b"/r/"):
            raise bad_line(path, number, "its second column is not a relation like /r/IsA", _DUMP)
        if not (start.startswith(prefix) and end.startswith(prefix)):
            continue
        if wanted and relation not in wanted:
            continue
        try:
            weight = float(json.loads(details)["weight"])
            if not math.isfinite(weight):
                raise ValueError("the weight is not finite")
            edge = Edge(_word(start, prefix), relation[3:].decode(), _word(end, prefix), weight)
        except UnicodeDecodeError as error:
            raise bad_line(path, number, "is not UTF-8", _DUMP) from error
        except (ValueError, KeyError, TypeError) as error:
            reason = f"its last column is not JSON with a weight ({error!r})"
            raise bad_line(path, number, reason, _DUMP) from error
        yield edge


def read_numberbatch(
    path: Path,
    words: Container[str],
    language: str = "en",
    watch: Watch = ignore,
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the vectors of the given words.

    After a line with two counts, each line is a word and its numbers. The word is written
    `ice_cream` in English-only files and `/c/en/ice_cream` in multilingual ones.
    """
    prefix = f"/c/{language}/".encode()
    dimension = 0
    for number, line in lines(path, _NUMBERBATCH, watch):
        name, _, numbers = line.partition(b" ")
        if number == 1 and len(line.split()) == 2:
            continue
        if name.startswith(b"/c/"):
            if not name.startswith(prefix):
                continue
            name = name[len(prefix) :]
        try:
            word = name.decode().replace("_", " ")
            if word not in words:
                continue
            vector = np.array(numbers.split(), dtype=np.float32)
        except ValueError as error:
            raise bad_line(path, number, "is not a word and its numbers", _NUMBERBATCH) from error
        dimension = dimension or len(vector)
        if len(vector) != dimension or not dimension:
            reason = (
                f"has {len(vector)} numbers, not {dimension}" if dimension else "has no numbers"
            )
            raise bad_line(path, number, reason, _NUMBERBATCH)
        if not np.isfinite(vector).all():
            raise bad_line(path, number, "has a number that is not finite", _NUMBERBATCH)
        yield word, vector


def _word(uri: bytes, prefix: bytes) -> str:
    return uri[len(prefix) :].split(b"/", 1)[0].decode().replace("_", " ")
