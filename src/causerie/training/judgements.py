"""Judged replies as something to learn from: exchanges, what people said, which corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from causerie.dialogue import Exchange

if TYPE_CHECKING:
    from numpy.typing import NDArray

Terms: TypeAlias = Literal["strict", "default", "research"]
"""Who may learn from judgements: `strict` if a licence allows commercial use explicitly,
`default` if nobody forbids it, else `research`."""
TERMS: tuple[Terms, ...] = ("strict", "default", "research")


@dataclass(frozen=True, eq=False)
class JudgedReplies:
    """The replies of one judged set."""

    name: str
    corpus: str
    """Sets that share contexts, or systems, have one corpus: nobody is tested on a sibling."""
    licence: str
    terms: Terms
    exchanges: tuple[Exchange, ...]
    ratings: Mapping[str, NDArray[np.float64]]
    """Mean ratings by dimension, not a number where nobody gave one."""
    scales: Mapping[str, tuple[float, float]]
    """The ends of each dimension's scale."""
    main: str
    """The dimension that says how good a reply is."""
    clusters: tuple[str, ...]
    """Replies of one cluster are not independent."""
    humans: tuple[bool, ...] = ()
    """Which replies people wrote."""

    def __len__(self) -> int:
        return len(self.exchanges)

    def allowed(self, terms: Terms) -> bool:
        """Whether a variant under those terms may learn from it."""
        return TERMS.index(self.terms) <= TERMS.index(terms)
