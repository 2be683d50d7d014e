"""CausalScore's schemas on pairs small enough to count by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nltk.metrics.agreement import AnnotationTask
from scipy import stats

from causerie.bench.statistics import cont2cat, ignore_equal, vote_codes, voting_points
from causerie.bench.statistics.votes import VOTES

VOTED = [
    ["A", "A", "both good"],
    ["B", "both bad", "A"],
    ["both good", "both good", "both good"],
    ["B", "B", None],
    [None, None, None],
]


def test_voting_sums_points_over_all_comparisons_of_a_response():
    # Pairs (0, 1), (0, 2), (1, 2), (1, 3), (3, 4).
    points = voting_points(VOTED, [0, 0, 1, 1, 3], [1, 2, 2, 3, 4], 6)
    # 0: 3 as A, then 1; 1: 1, 3, 0; 2: 1, 3; 3: 2; 4 and 5 have no votes.
    assert points[:4].tolist() == [4, 4, 4, 2]
    assert np.isnan(points[4:]).all()


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
    task = [(f"h{k}", i, v) for i, row in enumerate(votes) for k, v in enumerate(row)]
    # Equal scores are a vote for B; no score is no vote.
    metric = [("m", i, "A" if d > 0 else "B") for i, d in enumerate(differences) if d == d]
    wanted = AnnotationTask(task + metric).alpha()
    assert cont2cat(differences, votes)[0].value == pytest.approx(wanted)


def test_each_metric_has_its_own_estimate():
    votes = [["A", "A"], ["B", "B"], ["A", "B"]]
    good, bad = cont2cat([[1, -1, 1], [-1, 1, -1]], votes)
    assert good.value > bad.value


def test_unknown_votes_are_refused():
    with pytest.raises(ValueError, match="'C' is not a vote"):
        vote_codes([["A", "C"]])
