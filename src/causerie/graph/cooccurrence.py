"""Words that answer each other: keywords of neighbouring turns, more often than by chance."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causerie.graph.edges import Edge

RELATION = "AnsweredWith"
FALSE_EDGES = 0.01
"""Share of the edges that may be there by chance."""
_SHIFT = 32


def cooccurrence(
    dialogues: Iterable[Sequence[Collection[str]]], false_edges: float = FALSE_EDGES
) -> Iterator[Edge]:
    """Edges between keywords of neighbouring turns; a dialogue is the keywords of its turns.

    The weight is the normalised pointwise mutual information of finding one word in a turn and
    the other in a turn beside it, of all such places in the corpus. Words that meet in no more
    dialogues than chance explains (Poisson, false discovery rate over all pairs) have no edge:
    one dialogue that goes on about one thing is one piece of evidence.
    """
    ids: dict[str, int] = {}
    seen, met, met_once = array("q"), array("q"), array("q")
    neighbours = 0
    for dialogue in dialogues:
        turns = [sorted({ids.setdefault(word, len(ids)) for word in turn}) for turn in dialogue]
        here: list[int] = []
        for left, right in pairwise(turns):
            neighbours += 1
            # Both turns are beside the other: each word is seen once from there.
            seen.extend(left)
            seen.extend(right)
            # Words that change places between the two turns meet twice.
            here += [min(a, b) << _SHIFT | max(a, b) for a in left for b in right if a != b]
        met.extend(here)
        met_once.extend(set(here))
    if not met:
        return
    places = 2 * neighbours
    counts = np.bincount(np.frombuffer(seen, dtype=np.int64), minlength=len(ids))
    pairs, together = np.unique(np.frombuffer(met, dtype=np.int64), return_counts=True)
    _, dialogues_with = np.unique(np.frombuffer(met_once, dtype=np.int64), return_counts=True)
    one, other = pairs >> _SHIFT, pairs & ((1 << _SHIFT) - 1)
    expected = counts[one] * counts[other] / places
    tests = len(ids) * (len(ids) - 1) / 2
    kept = _more_than_chance(dialogues_with, expected, tests, false_edges)
    # A pair that fills every place would divide by the logarithm of one.
    share = np.minimum(together / places, 1 - 1e-12)
    npmi = np.log(together / expected) / -np.log(share)
    words = list(ids)
    for pair in np.flatnonzero(kept & (npmi > 0)):
        yield Edge(words[one[pair]], RELATION, words[other[pair]], float(npmi[pair]))


def _more_than_chance(
    counts: NDArray[np.int64], expected: NDArray[np.float64], tests: float, rate: float
) -> NDArray[np.bool_]:
    """Which counts are significant, by the procedure of Benjamini and Hochberg.

    `tests` includes the pairs that never met, whose p-value is one.
    """
    from scipy.special import gammainc

    p_values = gammainc(counts, expected)  # of at least so many, if they come at random
    order = np.sort(p_values)
    passing = np.flatnonzero(order <= rate * np.arange(1, len(order) + 1) / tests)
    limit = order[passing[-1]] if len(passing) else -1.0
    significant: NDArray[np.bool_] = p_values <= limit
    return significant
