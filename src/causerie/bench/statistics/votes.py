"""CausalScore's three ways to hold a metric against pairwise judgements (its section 4.2).

A vote is "A", "B", "both good" or "both bad"; None where an annotator gave none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from causerie.bench.statistics.agreement import krippendorff_alpha
from causerie.bench.statistics.correlation import point_biserial
from causerie.bench.statistics.estimate import Estimate, FloatArray, IntArray, as_matrix

Votes: TypeAlias = Sequence[Sequence[str | None]]
"""Pairs x annotators."""

VOTES = ("A", "B", "both good", "both bad")
_A, _B, _GOOD, _BAD = range(4)


def vote_codes(votes: Votes) -> FloatArray:
    """Pairs x annotators: the place of each vote in `VOTES`, NaN for none."""
    width = max((len(row) for row in votes), default=0)
    codes = np.full((len(votes), width), np.nan)
    for pair, row in enumerate(votes):
        for annotator, vote in enumerate(row):
            if vote is not None:
                if vote not in VOTES:
                    raise ValueError(f"{vote!r} is not a vote: use one of {', '.join(VOTES)}")
                codes[pair, annotator] = VOTES.index(vote)
    return codes


def voting_points(votes: Votes, first: ArrayLike, second: ArrayLike, responses: int) -> FloatArray:
    """Voting: the points of each response, to be correlated with the metric's scores.

    `first` and `second` are the numbers (0 to `responses` - 1) of the responses A and B of
    each pair. "A" gives A a point, "B" gives B one, "both good" both, "both bad" neither.
    The paper's text does not say whether a response is scored once per comparison or once in
    all; its case studies (tables 4 and 8) show totals up to 9, so we sum over all annotators
    and all comparisons a response takes part in. NaN for a response without any vote.
    """
    codes = vote_codes(votes)
    points, cast = np.zeros(responses), np.zeros(responses)
    for members, own in ((first, _A), (second, _B)):
        index = np.asarray(members, dtype=np.int64)
        np.add.at(points, index, ((codes == own) | (codes == _GOOD)).sum(axis=1))
        np.add.at(cast, index, (~np.isnan(codes)).sum(axis=1))
    return np.where(cast > 0, points, np.nan)


def ignore_equal_points(votes: Votes) -> tuple[IntArray, FloatArray]:
    """The votes that prefer one response: the pair each is about, and 1 for A or 0 for B.

    The paper's sentence names "A is better than B" twice; we read the second as "B is better
    than A". Every annotator's vote is an observation of its own ("for one human annotator
    results"), so a pair can occur several times.
    """
    codes = vote_codes(votes)
    pair, annotator = np.nonzero((codes == _A) | (codes == _B))
    return pair.astype(np.int64), (codes[pair, annotator] == _A).astype(np.float64)


def ignore_equal(differences: ArrayLike, votes: Votes) -> list[Estimate]:
    """IgnoreEqual: point-biserial correlation of score(A) - score(B) with a preference for A.

    `differences` is metrics x pairs; n is the number of votes that prefer a response.
    """
    pair, prefers_a = ignore_equal_points(votes)
    return point_biserial(as_matrix(differences)[:, pair], prefers_a)


def cont2cat(differences: ArrayLike, votes: Votes) -> list[Estimate]:
    """Cont2Cat: Krippendorff's nominal alpha of the annotators with the metric as one more.

    The metric votes "A" if score(A) - score(B) is positive and "B" otherwise, so equal scores
    are a vote for B as the paper has it; where it has no score it casts no vote. The metric
    never says "both", which keeps alpha below that of the annotators among themselves
    (`krippendorff_alpha(vote_codes(votes))`): compare metrics, and this ceiling.
    """
    codes = vote_codes(votes)
    result = []
    for row in as_matrix(differences):
        metric = np.where(np.isnan(row), np.nan, np.where(row > 0, _A, _B))
        result.append(krippendorff_alpha(np.column_stack([codes, metric])))
    return result
