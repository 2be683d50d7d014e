"""The graph on disk: a folder that opens at once, however large the graph is.

graph.json           relations, sources, counts
graph.safetensors    nodes and edges
vectors.safetensors  a small vector for each node, if the graph has vectors
frequencies.json     word frequencies, if the graph was built from a corpus
SHA256SUMS           digests of these files, checked whenever the graph is opened
card.md, LICENSE     its sources and licences
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError
from causerie.graph.about import ABOUT, About
from causerie.graph.arrays import arrays_in
from causerie.graph.edges import SYMMETRIC
from causerie.io.shipped import shipped_folder, shipped_names
from causerie.io.verified import Content, joint_sha256, read_content, sha256
from causerie.text.keywords import Frequencies

EDGES, VECTORS, FREQUENCIES = "graph.safetensors", "vectors.safetensors", "frequencies.json"
CARD, LICENCE, DIGESTS = "card.md", "LICENSE", "SHA256SUMS"
PARTS = (ABOUT, EDGES, VECTORS, FREQUENCIES)
"""The files that determine what is computed with a graph; the last two are optional."""
_DIGEST = re.compile(r"([0-9a-f]{64})  (\S+)", re.ASCII)
DEFAULT = "everyday"
"""The graph that ships with causerie."""

EDGE_ARRAYS = {
    "starts": "I64",  # where each node's edges begin, and the end
    "offsets": "I64",  # where each node's name begins, and the end
    "targets": "I32",
    "weights": "F16",
    "relations": "U8",  # twice the number of the relation, plus one if it is read backwards
    "sources": "U8",
    "names": "U8",  # of the nodes: sorted, UTF-8, without separators
}
VECTOR_ARRAYS = {"scales": "F32", "vectors": "I8"}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One edge, seen from one of its ends."""

    word: str
    relation: str
    backwards: bool
    """Whether the neighbour is the edge's head: `dog IsA animal` seen from `animal`. Always False
    for symmetric relations."""
    weight: float
    source: str


@dataclass(frozen=True, eq=False)
class Graph:
    """Words as nodes 0, 1, ... in the order of their names, and the edges between them.

    Edges have a direction and a relation but can be walked both ways: each is listed at both of
    its ends. Nodes are lower-case words or phrases with spaces.
    """

    folder: Path
    about: About
    arrays: dict[str, NDArray[Any]]
    contents: Mapping[str, Content]
    """The contents of its files at the time it was opened, by file name."""

    @classmethod
    def open(cls, name: str | Path = DEFAULT) -> Graph:
        """Open a graph that ships with causerie by its name, or any graph by its folder."""
        folder = find_graph(name)
        try:
            contents = {
                part: _verified(folder / part, digest)
                for part, digest in read_digests(folder).items()
            }
            about = About.of(contents[ABOUT].json())
            arrays = arrays_in(contents[EDGES], EDGE_ARRAYS)
            if not _fit_together(about, arrays):
                raise ValueError("its files do not belong together")
            if VECTORS in contents:
                arrays |= arrays_in(contents[VECTORS], VECTOR_ARRAYS)
                rows = arrays["vectors"].shape[:1], arrays["scales"].shape
                if arrays["vectors"].ndim != 2 or set(rows) != {(about.nodes,)}:
                    raise ValueError("its vectors belong to another graph")
        except (OSError, ValueError) as error:
            raise CauserieError(
                f"the graph {folder} is damaged or of another version ({error}): build it again "
                "with `causerie graph build`, or reinstall causerie"
            ) from error
        return cls(folder, about, arrays, contents)

    def __len__(self) -> int:
        return self.about.nodes

    def find(self, word: str) -> int | None:
        """Return the node of a lower-case word or phrase, None if the graph lacks it."""
        wanted = word.encode("utf-8", "replace")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._name(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._name(low) == wanted else None

    def word(self, node: int) -> str:
        return self._name(node).decode()

    def neighbours(self, node: int) -> list[Neighbour]:
        """Return every edge of a node by source, the strongest first."""
        edges = slice(self._starts[node], self._starts[node + 1])
        columns = [self.arrays[name][edges] for name in ("sources", "weights", "targets")]
        found = [
            Neighbour(
                word=self.word(target),
                relation=(name := self.about.relations[relation // 2]),
                backwards=bool(relation % 2) and name not in SYMMETRIC,
                weight=float(weight),
                source=self.about.sources[source].name,
            )
            for source, weight, target, relation in zip(
                *(column.tolist() for column in columns),
                self.arrays["relations"][edges].tolist(),
                strict=True,
            )
        ]
        order = {source.name: place for place, source in enumerate(self.about.sources)}
        return sorted(found, key=lambda one: (order[one.source], -one.weight, one.word))

    def adjacent(self, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return all neighbours of these nodes; a node may occur several times."""
        starts = self.arrays["starts"][nodes]
        counts = self.arrays["starts"][nodes + 1] - starts
        before = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(starts - before, counts)
        targets: NDArray[np.int32] = self.arrays["targets"][places]
        return targets

    @property
    def sha256(self) -> str:
        """A joint digest of its files, except card and licence."""
        return joint_sha256([(part, content.sha256) for part, content in self.contents.items()])

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; 0 if the graph has none."""
        return int(self.arrays["vectors"].shape[1]) if "vectors" in self.arrays else 0

    def vectors(self, nodes: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Return one row per node: zeros where a node has no vector."""
        if not self.dimension:
            raise CauserieError(f"the graph {self.folder} has no vectors: build one with them")
        rows = np.asarray(nodes, dtype=np.int64)
        scaled: NDArray[np.float32] = (
            self.arrays["vectors"][rows].astype(np.float32) * self.arrays["scales"][rows][:, None]
        )
        return scaled

    @cached_property
    def frequencies(self) -> Frequencies:
        """Word frequencies of its corpus, for finding keywords."""
        if FREQUENCIES not in self.contents:
            raise CauserieError(
                f"the graph {self.folder} was not built from a corpus, so it does not know "
                "which words are common: build it with --corpus"
            )
        return Frequencies.parse(self.folder / FREQUENCIES, self.contents[FREQUENCIES].json)

    @cached_property
    def _starts(self) -> memoryview:  # elements are read faster than from an array
        return self.arrays["starts"].data

    @cached_property
    def _offsets(self) -> memoryview:
        return self.arrays["offsets"].data

    @cached_property
    def _names(self) -> memoryview:
        return self.arrays["names"].data

    def _name(self, node: int) -> bytes:
        return self._names[self._offsets[node] : self._offsets[node + 1]].tobytes()


def _fit_together(about: About, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether every index lies within its array, so that no later access can fail."""
    nodes, edges = about.nodes, 2 * about.edges
    shapes = {"starts": nodes + 1, "offsets": nodes + 1} | dict.fromkeys(
        ("targets", "weights", "relations", "sources"), edges
    )
    if any(arrays[name].shape != (size,) for name, size in shapes.items()) or edges <= 0:
        return False
    return (
        _runs(arrays["starts"], edges)
        and _runs(arrays["offsets"], arrays["names"].size)
        and 0 <= arrays["targets"].min() <= arrays["targets"].max() < nodes
        and arrays["relations"].max() // 2 < len(about.relations)
        and arrays["sources"].max() < len(about.sources)
    )


def _runs(starts: NDArray[Any], end: int) -> bool:
    """Whether the offsets run from 0 to the end without decreasing."""
    return bool(starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all())


def write_digests(folder: Path) -> None:
    """Write the digests of the parts of a finished graph."""
    lines = [f"{sha256(folder / part)}  {part}\n" for part in PARTS if (folder / part).exists()]
    (folder / DIGESTS).write_text("".join(lines), "utf-8")


def read_digests(folder: Path) -> dict[str, str]:
    """Return the parts of a graph in order, each with its SHA-256 digest."""
    lines = (folder / DIGESTS).read_text("utf-8").splitlines()
    found = [match for match in map(_DIGEST.fullmatch, lines) if match]
    digests = {match[2]: match[1] for match in found}
    if len(found) < len(lines) or not {ABOUT, EDGES} <= digests.keys() <= set(PARTS):
        raise ValueError(f"{DIGESTS} does not list the parts of a graph")
    return {part: digests[part] for part in PARTS if part in digests}


def _verified(file: Path, digest: str) -> Content:
    content = read_content(file)
    if content.sha256 != digest:
        raise ValueError(f"{file.name} does not match {DIGESTS}")
    return content


def find_graph(name: str | Path) -> Path:
    """Return the folder of a graph; raise an error that says what to do if there is none."""
    folder = _shipped(name) or Path(name)
    if (folder / ABOUT).is_file():
        return folder
    raise CauserieError(
        f"{name} is not a graph: give {DEFAULT!r} or a folder that `causerie graph build` wrote"
    )


def lasting_name(name: str) -> str:
    """Return a name of the graph that is valid in any working directory."""
    folder = find_graph(name)
    return name if folder == _shipped(name) else str(folder.resolve())


def shipped_graphs() -> list[str]:
    """Return the names of the graphs that ship with causerie or with packages that extend it."""
    return shipped_names("graphs", ABOUT)


def _shipped(name: str | Path) -> Path | None:
    return shipped_folder("graphs", str(name), ABOUT)
