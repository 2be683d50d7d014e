"""The units of a judged set that are scored (responses or dialogues, each once), and samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from causerie.bench.sets.judged import JudgedItem, JudgedPair, JudgedSet
from causerie.dialogue import Exchange
from causerie.metrics.base import Level
from causerie.scoring.store import Item
from causerie.stats import IntArray

_NO_PAIRS: IntArray = np.array([], np.int64)


@dataclass(frozen=True)
class Units:
    """The responses or dialogues of a judged set in order, with what each belongs to."""

    items: tuple[Item, ...]
    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    """Cluster of each item; items of one cluster are not independent."""
    contexts: tuple[object, ...]
    """Context of each item, equal if items answer the same turns."""
    systems: tuple[str, ...]
    """System of each item, empty if unknown."""
    human_written: tuple[bool, ...]
    first: IntArray
    """Per pair, the unit that is A; empty unless the set consists of pairs."""
    second: IntArray

    def __len__(self) -> int:
        return len(self.items)

    def only(self, keep: NDArray[np.bool_]) -> Units:
        """Return the units of a mask, without pairs."""
        places = np.flatnonzero(keep).tolist()
        return Units(
            items=tuple(self.items[i] for i in places),
            ids=tuple(self.ids[i] for i in places),
            clusters=tuple(self.clusters[i] for i in places),
            contexts=tuple(self.contexts[i] for i in places),
            systems=tuple(self.systems[i] for i in places),
            human_written=tuple(self.human_written[i] for i in places),
            first=_NO_PAIRS,
            second=_NO_PAIRS,
        )


def level_of(judged: JudgedSet) -> Level:
    """Return the level of the scored units: for pairs, that of each response."""
    return "dialogue" if judged.level == "dialogue" else "turn"


def units_of(judged: JudgedSet) -> Units:
    """Return the units; a response in several pairs is one unit."""
    return _of_pairs(judged.pairs) if judged.level == "pair" else _of_items(judged.items)


class _Clustered(Protocol):
    @property
    def cluster(self) -> str: ...


Member = TypeVar("Member", bound=_Clustered)


def whole_clusters(members: Sequence[Member], most: int, seed: int) -> tuple[Member, ...]:
    """Return at most `most` of the members, in whole clusters and their original order.

    The draw depends only on the seed and the clusters' names, so it is the same everywhere, and a
    smaller sample is part of a larger one. At least one cluster is always taken.
    """
    if len(members) <= most:
        return tuple(members)
    sizes = Counter(member.cluster for member in members)
    kept: set[str] = set()
    total = 0
    for cluster in sorted(sizes, key=lambda name: sha256(f"{seed} {name}".encode()).digest()):
        total += sizes[cluster]
        if kept and total > most:
            break
        kept.add(cluster)
    return tuple(member for member in members if member.cluster in kept)


def sampled(judged: JudgedSet, most: int, seed: int) -> JudgedSet:
    """Return the set with at most `most` of its items (or pairs), in whole clusters."""
    return replace(
        judged,
        items=whole_clusters(judged.items, most, seed),
        pairs=whole_clusters(judged.pairs, most, seed),
    )


def _of_items(items: Sequence[JudgedItem]) -> Units:
    return Units(
        items=tuple(i.item for i in items),
        ids=tuple(i.id for i in items),
        clusters=tuple(i.cluster for i in items),
        contexts=tuple(_context(i.item) for i in items),
        systems=tuple(i.system or "" for i in items),
        human_written=tuple(i.human for i in items),
        first=_NO_PAIRS,
        second=_NO_PAIRS,
    )


def _of_pairs(pairs: Sequence[JudgedPair]) -> Units:
    number: dict[tuple[str, str, str], int] = {}
    rows: list[tuple[Exchange, str, str, bool]] = []
    sides: tuple[list[int], list[int]] = ([], [])
    for pair in pairs:
        both = zip((pair.a, pair.b), pair.systems, pair.humans, strict=True)
        for place, (side, system, human) in enumerate(both):
            key = (pair.cluster, system, side.response.text)
            if key not in number:
                number[key] = len(rows)
                rows.append((side, pair.cluster, system, human))
            sides[place].append(number[key])
    return Units(
        items=tuple(side for side, *_ in rows),
        ids=tuple(f"{cluster}:{system}" for _, cluster, system, _ in rows),
        clusters=tuple(cluster for _, cluster, _, _ in rows),
        contexts=tuple(_context(side) for side, *_ in rows),
        systems=tuple(system for _, _, system, _ in rows),
        human_written=tuple(human for *_, human in rows),
        first=np.array(sides[0], np.int64),
        second=np.array(sides[1], np.int64),
    )


def _context(item: Item) -> object:
    """Return what the item answers; a dialogue is its own context."""
    return tuple(turn.text for turn in item.context) if isinstance(item, Exchange) else item.id
