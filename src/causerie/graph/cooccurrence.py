"""Edges between words that answer each other: keywords that co-occur in neighbouring turns."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causerie.graph.edges import Edge

RELATION = "AnsweredWith"
FALSE_EDGES = 0.01
"""Default false discovery rate: the share of edges that may be due to chance."""
_SHIFT = 32


def cooccurrence(
    dialogues: Iterable[Sequence[Collection[str]]], false_edges: float = FALSE_EDGES
) -> Iterator[Edge]:
    """Yield edges between keywords of neighbouring turns; a dialogue is the keywords of its turns.

    The weight is the normalised pointwise mutual information of one word in a turn and the other
    in a neighbouring turn. Words that meet in no more dialogues than chance explains (Poisson
    test, false discovery rate controlled over all pairs) get no edge. Dialogues are counted
    because a dialogue that dwells on one topic is a single piece of evidence.
    """
    ids: dict[str, int] = {}
    seen, met, met_once = array("q"), array("q"), array("q")
    neighbours = 0
    for dialogue in dialogues:
        turns = [sorted({ids.setdefault(word, len(ids)) for word in turn}) for turn in dialogue]
        here: list[int] = []
        for left, right in pairwise(turns):
            neighbours += 1
            # Each turn is the neighbour of the other, so each word counts once.
            seen.extend(left)
            seen.extend(right)
            # Two words that both occur in both turns meet twice.
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
    # A pair found in every place would divide by log(1) = 0.
    share = np.minimum(together / places, 1 - 1e-12)
    npmi = np.log(together / expected) / -np.log(share)
    words = list(ids)
    for pair in np.flatnonzero(kept & (npmi > 0)):
        yield Edge(words[one[pair]], RELATION, words[other[pair]], float(npmi[pair]))


def _more_than_chance(
    counts: NDArray[np.int64], expected: NDArray[np.float64], tests: float, rate: float
) -> NDArray[np.bool_]:
    """Return which counts are significant by the Benjamini-Hochberg procedure.

    `tests` includes the pairs that never met, whose p-value is 1.
    """
    from scipy.special import gammainc

    p_values = gammainc(counts, expected)  # P(Poisson(expected) >= count)
    order = np.sort(p_values)
    passing = np.flatnonzero(order <= rate * np.arange(1, len(order) + 1) / tests)
    limit = order[passing[-1]] if len(passing) else -1.0
    significant: NDArray[np.bool_] = p_values <= limit
    return significant
