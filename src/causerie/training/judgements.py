"""Judged replies as training data: exchanges, their ratings, and the corpus they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from causerie.dialogue import Exchange

if TYPE_CHECKING:
    from numpy.typing import NDArray

Terms: TypeAlias = Literal["strict", "default", "research"]
"""Which variant may learn from judgements: `strict` if the licence explicitly allows commercial
use, `default` if it does not forbid it, else `research`."""
TERMS: tuple[Terms, ...] = ("strict", "default", "research")


@dataclass(frozen=True, eq=False)
class JudgedReplies:
    """The replies of one judged set."""

    name: str
    corpus: str
    """Group of sets that share contexts or systems, so that none is tested on a sibling."""
    licence: str
    terms: Terms
    exchanges: tuple[Exchange, ...]
    ratings: Mapping[str, NDArray[np.float64]]
    """Mean ratings by dimension; NaN if nobody rated a reply."""
    scales: Mapping[str, tuple[float, float]]
    """The lowest and highest rating of each dimension's scale."""
    main: str
    """The dimension that rates the overall quality of a reply."""
    clusters: tuple[str, ...]
    """Cluster of each reply; replies of one cluster are not independent."""
    humans: tuple[bool, ...] = ()
    """Whether each reply was written by a person."""

    def __len__(self) -> int:
        return len(self.exchanges)

    def allowed(self, terms: Terms) -> bool:
        """Whether a variant under these terms may learn from this set."""
        return TERMS.index(self.terms) <= TERMS.index(terms)
