"""Usage vectors, against counts made by hand and an ordinary singular value decomposition."""

from __future__ import annotations

import random

import numpy as np
import pytest

from causerie.errors import CauserieError
from causerie.graph.usage import meetings, positive_information, usage_vectors

WORDS = ("a", "b", "c", "d", "e")
TALKS = [[{"a", "b"}, {"c"}, {"a", "c"}], [{"b"}, {"d", "other"}], [{"c", "d"}]]


def test_words_meet_in_a_turn_and_in_the_next_one() -> None:
    counts = meetings(TALKS, WORDS).toarray()
    expected = np.zeros((5, 5))
    for one, other, count in ((0, 1, 1), (0, 2, 3), (1, 2, 1), (1, 3, 1), (2, 3, 1)):
        expected[one, other] = expected[other, one] = count
    assert (counts == expected).all()


def test_information_worked_by_hand() -> None:
    """There are 14 meetings: a has 4, c has 5, and a and c meet 3 times."""
    found = positive_information(meetings(TALKS, WORDS)).toarray()
    each = np.array([4, 3, 5, 2, 0])
    smooth = each**0.75 / (each**0.75).sum()
    assert found[0, 2] == pytest.approx(np.log(3 / 14 / (4 / 14 * smooth[2])))
    assert found[0, 3] == 0  # they never meet
    assert (found >= 0).all()
    assert not found[4].any()


def test_vectors_are_the_largest_singular_ones_of_length_one() -> None:
    rng = random.Random(0)
    words = [f"w{n}" for n in range(30)]
    talks = [[set(rng.sample(words, 4)) for _ in range(5)] for _ in range(40)]
    found = usage_vectors(talks, [*words, "unheard"], 6)
    full = positive_information(meetings(talks, [*words, "unheard"])).toarray()
    left, strengths, _ = np.linalg.svd(full)
    expected = left[:, :6] * np.sqrt(strengths[:6])
    expected[:30] /= np.linalg.norm(expected[:30], axis=1, keepdims=True)
    # signs of directions are arbitrary, products are not
    assert found[:30] @ found[:30].T == pytest.approx(expected[:30] @ expected[:30].T, abs=1e-5)
    assert not found[30].any()
    assert (usage_vectors(talks, [*words, "unheard"], 6) == found).all()


def test_more_numbers_than_words_are_refused() -> None:
    with pytest.raises(CauserieError, match="too many"):
        usage_vectors(TALKS, WORDS, 5)
