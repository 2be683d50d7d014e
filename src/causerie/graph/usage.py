"""Word vectors from the co-occurrence counts of a corpus, without a network."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMOOTHING = 0.75
"""Exponent of the neighbours' counts; without it, rare words would weigh too much."""


def usage_vectors(
    dialogues: Iterable[Sequence[Collection[str]]], words: Sequence[str], dimension: int
) -> NDArray[np.float32]:
    """Return a unit-length row for each word; zeros for a word that meets no other.

    A dialogue is the words of its turns. Words meet in the same turn and in neighbouring turns.
    The matrix of their positive pointwise mutual information is reduced to its first `dimension`
    singular vectors, each scaled by the square root of its singular value.
    """
    from scipy.sparse.linalg import svds

    if not 0 < dimension < len(words):
        raise CauserieError(
            f"usage vectors of {dimension} dimensions are too many for {len(words):,} words: "
            "choose a dimension above 0 and below the number of words"
        )
    information = positive_information(meetings(dialogues, words))
    # A fixed starting vector makes builds reproducible.
    start = np.random.default_rng(0).normal(size=len(words))
    left, strengths, _ = svds(information, k=dimension, v0=start)
    order = np.argsort(-strengths)
    vectors = left[:, order] * np.sqrt(strengths[order])
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dimension)])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    met = np.diff(information.indptr) > 0
    units: NDArray[np.float32] = np.where(
        met[:, None], vectors / np.maximum(lengths, 1e-12), 0
    ).astype(np.float32)
    return units


def meetings(dialogues: Iterable[Sequence[Collection[str]]], words: Sequence[str]) -> csr_array:
    """Count how often two different words meet in one turn or in two consecutive turns."""
    from scipy.sparse import csr_array

    places = {word: place for place, word in enumerate(words)}
    columns, starts, follows = array("i"), array("q", [0]), array("b")
    for dialogue in dialogues:
        for number, turn in enumerate(dialogue):
            columns.extend(sorted({places[word] for word in turn if word in places}))
            starts.append(len(columns))
            follows.append(number > 0)
    shape = len(follows), len(words)
    said = csr_array((np.ones(len(columns)), columns, starts), shape=shape)
    later = np.flatnonzero(follows)
    answered = said[later].T @ said[later - 1]
    counts = csr_array(said.T @ said + answered + answered.T)
    counts.setdiag(0)
    counts.eliminate_zeros()
    return counts


def positive_information(counts: csr_array) -> csr_array:
    """Return the positive pointwise mutual information of word pairs (smoothed counts)."""
    from scipy.sparse import csr_array

    rows, columns = counts.nonzero()
    each = counts.sum(axis=1)
    neighbours = each**SMOOTHING
    chance = each[rows] / each.sum() * neighbours[columns] / neighbours.sum()
    values = np.log(counts.data / counts.sum() / chance)
    kept = values > 0
    return csr_array((values[kept], (rows[kept], columns[kept])), shape=counts.shape)
