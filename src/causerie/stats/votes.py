"""CausalScore's three ways to compare a metric with pairwise judgements (its section 4.2).

A vote is "A", "B", "both good" or "both bad", or None where an annotator gave none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from causerie.stats.agreement import krippendorff_alpha
from causerie.stats.correlation import point_biserial
from causerie.stats.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    Labels,
    as_matrix,
    label_index,
)
from causerie.stats.resampling import ClusterStatistic

Votes: TypeAlias = Sequence[Sequence[str | None]]
"""Votes as pairs x annotators."""

VOTES = ("A", "B", "both good", "both bad")
_A, _B, _GOOD, _BAD = range(4)


def vote_codes(votes: Votes) -> FloatArray:
    """Return pairs x annotators: the index of each vote in `VOTES`, NaN for none."""
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
    """Return Voting: the points per vote of each response, to correlate with metric scores.

    `first` and `second` are the numbers (0 to `responses` - 1) of responses A and B of each
    pair. "A" gives A a point, "B" gives B one, "both good" gives both one, "both bad" neither.
    The paper does not say whether a response is scored once per comparison or once in all; its
    case studies (tables 4 and 8) show totals up to 9, so points are summed over all annotators
    and all comparisons of a response. The sum is divided by the number of votes cast: where
    every response has equally many this changes no correlation, and where an annotator is
    missing the response is not penalised. A response without votes has NaN.
    """
    by_vote = points_by_vote(votes, first, second, responses)
    cast = (~np.isnan(by_vote)).sum(axis=(1, 2))
    return np.where(cast > 0, np.nansum(by_vote, axis=(1, 2)) / np.maximum(cast, 1), np.nan)


def points_by_vote(votes: Votes, first: ArrayLike, second: ArrayLike, responses: int) -> FloatArray:
    """Return responses x comparisons x annotators: whether a vote gave the response its point.

    A response's comparisons are in order; NaN where there is no comparison or no vote.
    """
    codes = vote_codes(votes)
    sides = [np.asarray(members, dtype=np.int64) for members in (first, second)]
    most = int(np.bincount(np.concatenate(sides), minlength=1).max())
    points = np.full((responses, most, codes.shape[1]), np.nan)
    met = np.zeros(responses, np.int64)
    for row, *members in zip(codes, *sides, strict=True):
        for response, own in zip(members, (_A, _B), strict=True):
            given = np.where((row == own) | (row == _GOOD), 1.0, 0.0)
            points[response, met[response]] = np.where(np.isnan(row), np.nan, given)
            met[response] += 1
    return points


def cyclic_triples(votes: Votes, first: ArrayLike, second: ArrayLike) -> Estimate:
    """Return the share of triples whose preferences are cyclic: a over b over c over a.

    A triple counts (n is their number) if each of its three comparisons has a majority; repeated
    pairs are one comparison. Coin tosses give a quarter, any consistent ordering fewer. In random
    tournaments any two triples are independent, so the interval is the binomial one (Clopper and
    Pearson's).
    """
    codes = vote_codes(votes)
    lead: dict[tuple[int, int], int] = {}
    for a, b, row in zip(
        np.asarray(first).tolist(), np.asarray(second).tolist(), codes, strict=True
    ):
        won = int((row == _A).sum()) - int((row == _B).sum())
        for sides, own in (((a, b), won), ((b, a), -won)):
            lead[sides] = lead.get(sides, 0) + own
    beaten: dict[int, set[int]] = {}
    for (winner, loser), own in lead.items():
        if own > 0:
            beaten.setdefault(winner, set()).add(loser)
    nobody: set[int] = set()
    circles = ordered = 0
    for a, losers in beaten.items():
        for b in losers:
            over_both = beaten.get(b, nobody)
            ordered += len(over_both & losers)  # a over b over c, and a over c
            circles += sum(a in beaten.get(c, nobody) for c in over_both)
    circles //= 3  # each was found once from each of its members
    triples = circles + ordered
    if not triples:
        reason = "no three responses were compared with a winner each time"
        return Estimate(None, 0, reason=reason)
    interval = binomtest(circles, triples).proportion_ci()
    return Estimate(circles / triples, triples, float(interval.low), float(interval.high))


def ignore_equal_points(votes: Votes) -> tuple[IntArray, FloatArray]:
    """Return the votes that prefer one response: the index of their pair, and 1 for A or 0 for B.

    The paper names "A is better than B" twice; we read the second as "B is better than A".
    Every annotator's vote is an observation of its own ("for one human annotator results"), so
    a pair can occur several times.
    """
    codes = vote_codes(votes)
    pair, annotator = np.nonzero((codes == _A) | (codes == _B))
    return pair.astype(np.int64), (codes[pair, annotator] == _A).astype(np.float64)


def ignore_equal(differences: ArrayLike, votes: Votes) -> list[Estimate]:
    """Return IgnoreEqual: point-biserial correlation of score(A) - score(B) with preferring A.

    `differences` is metrics x pairs; n is the number of votes that prefer a response.
    """
    pair, prefers_a = ignore_equal_points(votes)
    return point_biserial(as_matrix(differences)[:, pair], prefers_a)


def cont2cat(differences: ArrayLike, votes: Votes) -> list[Estimate]:
    """Return Cont2Cat: Krippendorff's nominal alpha with the metric as one more annotator.

    The metric votes "A" if score(A) - score(B) is positive and "B" otherwise; equal scores are
    a vote for B, as in the paper. Only the n pairs that it scored count: on the others the
    annotators would agree among themselves, to its credit. A metric that gives both responses
    of every pair the same score has no value.

    The metric never votes "both", which keeps alpha below that of the annotators among
    themselves (`krippendorff_alpha(vote_codes(votes))`), and the annotators' own agreement
    keeps it above 0: read it between `cont2cat_floor` and that ceiling.
    """
    codes = vote_codes(votes)
    return [_with_metric(codes, row) for row in as_matrix(differences)]


def cont2cat_of_clusters(
    differences: ArrayLike, votes: Votes, clusters: Labels
) -> ClusterStatistic:
    """Return Cont2Cat for resamples of whole clusters; `clusters` labels the pairs."""
    codes, rows = vote_codes(votes), as_matrix(differences)
    index, count = label_index(clusters)

    def alphas(counts: FloatArray) -> FloatArray:
        found = np.full((len(counts), len(rows)), np.nan)
        for resample, drawn in enumerate(counts):
            pairs = np.repeat(np.arange(len(index)), drawn[index].astype(np.int64))
            for metric, row in enumerate(rows):
                value = _with_metric(codes[pairs], row[pairs]).value
                found[resample, metric] = np.nan if value is None else value
        return found

    return ClusterStatistic(count, alphas)


def cont2cat_floor(votes: Votes) -> Estimate:
    """Return Cont2Cat of an uninformative metric, which votes for B on every pair."""
    codes = vote_codes(votes)
    return krippendorff_alpha(np.column_stack([codes, np.full(len(codes), _B)]))


def _with_metric(codes: FloatArray, differences: FloatArray) -> Estimate:
    scored = ~np.isnan(differences)
    own = differences[scored]
    if not len(own):
        return Estimate(None, 0, reason="no pair has a score on both sides")
    if not own.any():
        reason = "the metric scores both responses of every pair the same"
        return Estimate(None, len(own), reason=reason)
    return krippendorff_alpha(np.column_stack([codes[scored], np.where(own > 0, _A, _B)]))
