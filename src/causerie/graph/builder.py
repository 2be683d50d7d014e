"""Building a graph: collects edges from any number of sources and writes a graph folder."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError
from causerie.graph.about import ABOUT, About, Source
from causerie.graph.arrays import write_arrays
from causerie.graph.card import card, licences
from causerie.graph.edges import SYMMETRIC, Edge
from causerie.graph.graph import (
    CARD,
    DIGESTS,
    EDGES,
    FREQUENCIES,
    LICENCE,
    PARTS,
    VECTORS,
    write_digests,
)
from causerie.graph.vectors import WordVector, write_vectors
from causerie.io.atomic import atomic_folder
from causerie.text.keywords import Frequencies

MOST_RELATIONS = 128
MOST_SOURCES = 256
_LARGEST_WEIGHT = float(np.finfo(np.float16).max)


class Builder:
    """Collects edges as numbers, not texts, so that millions fit into memory."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._relations: dict[str, int] = {}
        self._sources: list[Source] = []
        self._heads, self._tails = array("i"), array("i")
        self._labels, self._origins = array("B"), array("B")
        self._weights = array("f")

    def add(self, source: Source, edges: Iterable[Edge]) -> int:
        """Add the edges of a source; return how many were added.

        Edges from a word to itself are left out. Of duplicates, including symmetric edges given
        in both directions, the heaviest is kept when the graph is written.
        """
        if len(self._sources) == MOST_SOURCES:
            raise CauserieError(f"a graph has at most {MOST_SOURCES} sources")
        before, origin = len(self._heads), len(self._sources)
        self._sources.append(source)
        ids, relations = self._ids, self._relations
        for head, relation, tail, weight in edges:
            if head == tail or not head or not tail:
                continue
            if relation in SYMMETRIC and tail < head:
                head, tail = tail, head
            self._heads.append(ids.setdefault(_name(head), len(ids)))
            self._tails.append(ids.setdefault(_name(tail), len(ids)))
            self._labels.append(relations.setdefault(relation, len(relations)))
            self._origins.append(origin)
            self._weights.append(weight)
            if len(relations) > MOST_RELATIONS:
                raise CauserieError(f"a graph has at most {MOST_RELATIONS} relations")
        return len(self._heads) - before

    @property
    def words(self) -> list[str]:
        """All nodes, sorted."""
        return [name.decode() for name in sorted(self._ids)]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and _name(word) in self._ids

    def write(
        self,
        folder: Path,
        vectors: Iterable[WordVector] = (),
        vectors_from: str = "",
        frequencies: Frequencies | None = None,
        recipe: str = "",
    ) -> About:
        """Write the graph atomically, replacing a graph that is already there.

        `vectors` yields words with their vectors in any order, and `vectors_from` says how they
        were made; `recipe` is the build command, for the card. The builder cannot be used again.
        """
        if not self._heads:
            raise CauserieError("no edges were found: give a source that has some")
        folder = folder.resolve()
        check_place(folder)
        try:
            with atomic_folder(folder) as hidden:
                about = self._write(hidden, folder.name, vectors, vectors_from, frequencies, recipe)
        except OSError as error:
            raise CauserieError(
                f"{folder} cannot be written ({error.strerror}): choose another folder"
            ) from error
        return about

    def _write(
        self,
        folder: Path,
        name: str,
        vectors: Iterable[WordVector],
        vectors_from: str,
        frequencies: Frequencies | None,
        recipe: str,
    ) -> About:
        """Write the files into an empty folder; `name` is the title of the card."""
        if frequencies is not None:
            frequencies.of(self).write(folder / FREQUENCIES)
        names = sorted(self._ids)
        rank = np.empty(len(names), dtype=np.int32)
        rank[[self._ids[name] for name in names]] = np.arange(len(names), dtype=np.int32)

        def row_of(word: str) -> int | None:
            found = self._ids.get(_name(word))
            return None if found is None else int(rank[found])

        has_vectors = write_vectors(folder / VECTORS, len(names), row_of, vectors)
        self._ids.clear()
        about, relations = self._write_edges(folder / EDGES, names, rank)
        about = replace(about, vectors=vectors_from if has_vectors else "")
        about.write(folder)
        write_digests(folder)
        (folder / CARD).write_text(card(name, about, relations, recipe), "utf-8")
        (folder / LICENCE).write_text(licences(about.sources), "utf-8")
        return about

    def _write_edges(
        self, file: Path, names: list[bytes], rank: NDArray[np.int32]
    ) -> tuple[About, dict[str, int]]:
        """Write the edges; return the description and the number of edges by relation."""
        offsets = np.zeros(len(names) + 1, dtype=np.int64)
        np.cumsum([len(name) for name in names], out=offsets[1:])
        blob = np.frombuffer(b"".join(names), dtype=np.uint8)
        names.clear()  # they are large
        heads = rank[np.frombuffer(self._heads, dtype=np.int32)]
        tails = rank[np.frombuffer(self._tails, dtype=np.int32)]
        labels = np.frombuffer(self._labels, dtype=np.uint8) * np.uint8(2)
        origins = np.frombuffer(self._origins, dtype=np.uint8)
        weights = np.clip(
            np.frombuffer(self._weights, dtype=np.float32), -_LARGEST_WEIGHT, _LARGEST_WEIGHT
        ).astype(np.float16)
        order = _distinct(heads, tails, labels, origins, weights)
        kept = len(order)
        per_relation = np.bincount(labels[order] // 2, minlength=len(self._relations)).tolist()
        per_source = np.bincount(origins[order], minlength=len(self._sources)).tolist()
        # Every edge is listed at both of its ends.
        both: dict[str, NDArray[Any]] = {
            "ends": np.concatenate((heads[order], tails[order])),
            "targets": np.concatenate((tails[order], heads[order])),
            "weights": np.tile(weights[order], 2),
            "relations": np.concatenate((labels[order], labels[order] + np.uint8(1))),
            "sources": np.tile(origins[order], 2),
        }
        del heads, tails, labels, origins, weights
        order = np.argsort(both["ends"].astype(np.int64) << 32 | both["targets"], kind="stable")
        starts = np.zeros(len(offsets), dtype=np.int64)
        np.cumsum(np.bincount(both.pop("ends"), minlength=len(offsets) - 1), out=starts[1:])
        for name in both:
            both[name] = both[name][order]
        write_arrays(file, {"starts": starts, "offsets": offsets, **both, "names": blob})
        about = About(
            nodes=len(offsets) - 1,
            edges=kept,
            relations=tuple(self._relations),
            sources=tuple(
                replace(source, edges=edges)
                for source, edges in zip(self._sources, per_source, strict=True)
            ),
        )
        return about, dict(zip(self._relations, per_relation, strict=True))


def _name(word: str) -> bytes:
    return word.encode("utf-8", "replace")


def _distinct(
    heads: NDArray[np.int32],
    tails: NDArray[np.int32],
    labels: NDArray[np.uint8],
    origins: NDArray[np.uint8],
    weights: NDArray[np.float16],
) -> NDArray[np.int64]:
    """Return the indices of distinct edges: of duplicates, the heaviest."""
    pairs = heads.astype(np.int64) << 32 | tails
    kinds = labels.astype(np.uint16) << 8 | origins
    order = np.lexsort((-weights, kinds, pairs))
    pairs, kinds = pairs[order], kinds[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (pairs[1:] != pairs[:-1]) | (kinds[1:] != kinds[:-1])
    return order[first]


def check_place(folder: Path) -> None:
    """Check that the folder does not exist, is empty or holds a graph that can be replaced."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    known = {*PARTS, CARD, LICENCE, DIGESTS}
    inside = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if ABOUT not in inside or inside - known:
        raise CauserieError(f"{folder} exists and is not a graph: choose another folder")
