"""CausalScore's schemas on pairs small enough to count by hand."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from scipy import stats

from causerie.stats import (
    VOTES,
    cont2cat,
    cont2cat_floor,
    cyclic_triples,
    ignore_equal,
    krippendorff_alpha,
    points_by_vote,
    vote_codes,
    voting_points,
)

VOTED = [
    ["A", "A", "both good"],
    ["B", "both bad", "A"],
    ["both good", "both good", "both good"],
    ["B", "B", None],
    [None, None, None],
]


def test_voting_counts_the_points_over_all_comparisons_of_a_response():
    # Pairs (0, 1), (0, 2), (1, 2), (1, 3), (3, 4).
    points = voting_points(VOTED, [0, 0, 1, 1, 3], [1, 2, 2, 3, 4], 6)
    # 0: 3 of 3 as A, then 1 of 3; 1: 1, 3, 0 of 2; 2: 1, 3; 3: 2 of 2; 4 and 5 have no votes.
    assert points[:4].tolist() == pytest.approx([4 / 6, 4 / 8, 4 / 6, 2 / 2])
    assert np.isnan(points[4:]).all()


def test_voting_does_not_punish_a_response_that_fewer_people_saw():
    # 0 and 2 win every vote against 1; 2 was shown to one annotator only.
    points = voting_points([["A", "A", "A"], ["B", None, None]], [0, 1], [1, 2], 3)
    assert points.tolist() == [1, 0, 1]


@given(st.integers(0, 10_000))
def test_voting_on_balanced_pairs_ranks_as_the_sums_do(seed):
    rng = np.random.default_rng(seed)
    first, second = zip(*combinations(range(5), 2), strict=True)
    votes = [list(row) for row in rng.choice(VOTES, (10, 3))]
    sums = [
        sum(
            (vote in ("A", "both good")) * (a == r) + (vote in ("B", "both good")) * (b == r)
            for a, b, row in zip(first, second, votes, strict=True)
            for vote in row
        )
        for r in range(5)
    ]
    points = voting_points(votes, first, second, 5)
    assert stats.rankdata(points).tolist() == stats.rankdata(sums).tolist()


def test_ignore_equal_takes_every_preference_of_every_annotator():
    differences = np.array([0.5, 0.1, 3.0, -2.0, 1.0])
    estimate = ignore_equal(differences, VOTED)[0]
    human = [1, 1, 0, 1, 0, 0]
    seen = [0.5, 0.5, 0.1, 0.1, -2.0, -2.0]
    assert estimate.value == pytest.approx(stats.pointbiserialr(human, seen).statistic)
    assert estimate.n == 6


def test_ignore_equal_without_a_preference_says_so():
    assert "no item" in ignore_equal([1.0], [["both good", "both bad"]])[0].reason
    assert "all equal" in ignore_equal([1.0, 2.0], [["A"], ["A"]])[0].reason


def test_cont2cat_is_nominal_alpha_with_the_metric_as_one_more_annotator():
    rng = np.random.default_rng(0)
    votes = [list(row) for row in rng.choice(VOTES, (30, 3))]
    differences = rng.standard_normal(30)
    differences[4] = 0.0
    differences[5] = math.nan
    assert cont2cat(differences, votes)[0].value == pytest.approx(with_metric(votes, differences))
    assert cont2cat(differences, votes)[0].n == 29


def with_metric(votes, differences):
    """Return NLTK's alpha: equal scores count for B, pairs without a score do not count."""
    rows = [
        (i, [*row, "A" if d > 0 else "B"])
        for i, (row, d) in enumerate(zip(votes, differences, strict=True))
        if d == d
    ]
    return AnnotationTask([(k, i, v) for i, row in rows for k, v in enumerate(row)]).alpha()


def test_unscored_pairs_do_not_lend_a_metric_the_annotators_agreement():
    rng = np.random.default_rng(1)
    votes = [[v] * 3 for v in rng.choice(VOTES, 200)]
    noise = rng.standard_normal(200)
    few = np.where(np.arange(200) < 50, noise, math.nan)
    assert cont2cat(few, votes)[0].value == pytest.approx(with_metric(votes, few))
    assert cont2cat(few, votes)[0].value < 0.6
    assert krippendorff_alpha(vote_codes(votes)).value == 1


def test_cont2cat_has_no_number_for_a_metric_that_prefers_nothing():
    votes = [["A", "A"], ["B", "A"], ["B", "B"]]
    silent, none = cont2cat([[0.0, 0.0, math.nan], [math.nan] * 3], votes)
    assert silent.value is none.value is None
    assert silent.reason == "the metric scores both responses of every pair the same"
    assert none.reason == "no pair has a score on both sides"


def test_the_floor_is_a_metric_that_always_votes_for_b():
    rng = np.random.default_rng(2)
    votes = [list(row) for row in rng.choice(VOTES, (40, 3), p=[0.4, 0.3, 0.2, 0.1])]
    assert cont2cat_floor(votes).value == pytest.approx(with_metric(votes, np.full(40, -1.0)))
    assert cont2cat_floor(votes).value == cont2cat(np.full(40, -1.0), votes)[0].value


def test_each_metric_has_its_own_estimate():
    votes = [["A", "A"], ["B", "B"], ["A", "B"]]
    good, bad = cont2cat([[1, -1, 1], [-1, 1, -1]], votes)
    assert good.value > bad.value


def test_unknown_votes_are_refused():
    with pytest.raises(ValueError, match="'C' is not a vote"):
        vote_codes([["A", "C"]])


# The six comparisons of four responses: 0-1, 0-2, 0-3, 1-2, 1-3, 2-3.
FIRST, SECOND = zip(*combinations(range(4), 2), strict=True)


def one_vote_each(text):
    return [["both good"] if vote == "=" else [vote] for vote in text]


@pytest.mark.parametrize(
    ("votes", "circles", "triples"),
    [
        ("AAAAAA", 0, 4),  # 0 over 1 over 2 over 3
        ("ABAAAA", 1, 4),  # 0 over 1 over 2 over 0; 3 loses everywhere
        ("AABAAA", 2, 4),  # 3 over 0, which closes 0-1-3 and 0-2-3
        ("AAA=AA", 0, 2),  # nobody won 1-2: the triples with both do not count
    ],
)
def test_circles_of_tournaments_counted_by_hand(votes, circles, triples):
    found = cyclic_triples(one_vote_each(votes), FIRST, SECOND)
    assert (found.value, found.n) == (circles / triples, triples)
    exact = stats.binomtest(circles, triples).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_a_comparison_has_the_winner_of_most_votes_whoever_stands_first():
    votes = [["A", "A", "B"], ["B", "both bad", "B"], ["A", None, None], ["B", "B", "B"]]
    # 0 over 1, 1 over 2 (as B), 2 over 0; the last repeats 0-1 the other way round: 0 over 1.
    found = cyclic_triples(votes, [0, 2, 2, 1], [1, 1, 0, 0])
    assert (found.value, found.n) == (1.0, 1)
    assert cyclic_triples(votes[:2], [0, 2], [1, 1]).value is None


def test_random_voters_have_a_quarter_of_circles_and_those_with_an_order_fewer():
    rng = np.random.default_rng(3)
    places = [(8 * c + a, 8 * c + b) for c in range(60) for a, b in combinations(range(8), 2)]
    first, second = zip(*places, strict=True)
    coin = [[vote] for vote in rng.choice(["A", "B"], len(places))]
    assert cyclic_triples(coin, first, second).value == pytest.approx(0.25, abs=0.02)
    worth = rng.standard_normal(480)
    lead = worth[list(first)] - worth[list(second)] + 0.3 * rng.standard_normal(len(places))
    ordered = [["A" if one > 0 else "B"] for one in lead]
    assert cyclic_triples(ordered, first, second).value < 0.06


def test_points_of_single_votes():
    found = points_by_vote(VOTED, [0, 0, 1, 1, 3], [1, 2, 2, 3, 4], 6)
    assert found.shape == (6, 3, 3)
    assert found[0, :2].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert found[2, :2].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert np.isnan(found[0, 2]).all()
    assert np.isnan(found[3, 0, 2])
