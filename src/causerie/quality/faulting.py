"""How faults are learned: from replies of held-out dialogues, made faulty, and their features.

The learners see all that `quality` sees: a reader of the words (`slips`) and the metrics that
know whether a reply is on topic. All replies teach those that are kept; what
calibrates and is reported is what learners of one half of the dialogues say of the other half.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from causerie.dialogue import Exchange
from causerie.quality.judging import ALL, fault_probabilities
from causerie.quality.learner import Learner
from causerie.stats import ClusteredRatio
from causerie.training.corpus import Corpus, sample
from causerie.training.faulty import FAULTS, Faulty, Replies, good, made
from causerie.training.negatives import clusters_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PRIOR = 0.1
"""Share of replies with a fault, as which probabilities are told."""
FLAGGED = 0.05
"""Share of good replies above the limit of a fault."""
FAR = 1e-6


@dataclass(frozen=True, eq=False)
class MadeReplies:
    """Good replies and faulty ones after the same contexts."""

    exchanges: tuple[Exchange, ...]
    has: NDArray[np.bool_]
    """(replies, faults)"""
    known: NDArray[np.bool_]
    """Of which faults it is known whether the reply has them."""
    clusters: tuple[int, ...]

    @property
    def fine(self) -> NDArray[np.bool_]:
        return np.logical_not(self.has.any(axis=1))

    @classmethod
    def joined(cls, halves: Sequence[MadeReplies]) -> MadeReplies:
        """All of them, in their order."""
        before = np.cumsum([0, *(max(half.clusters, default=-1) + 1 for half in halves)]).tolist()
        return cls(
            tuple(exchange for half in halves for exchange in half.exchanges),
            np.concatenate([half.has for half in halves]),
            np.concatenate([half.known for half in halves]),
            tuple(n + c for n, half in zip(before, halves, strict=False) for c in half.clusters),
        )

    @classmethod
    def of(cls, corpus: Corpus, count: int, seed: int) -> MadeReplies:
        """About so many, half of them faulty, as many of each fault as can be made."""
        rng = random.Random(seed)
        drawn: list[tuple[Exchange, Faulty]] = []
        share = -(-count // (2 * len(corpus.sources)))
        for source in corpus.sources:
            replies = Replies(source)
            own = [e for d in source for e in d.exchanges() if e.response.text.split()]
            for place, exchange in enumerate(sample(own, share, seed)):
                first = place % len(FAULTS)
                others = rng.sample(FAULTS, len(FAULTS))
                for fault in (FAULTS[first], *others):
                    if faulty := made(exchange, fault, replies, rng):
                        drawn += [(exchange, good(exchange, replies)), (exchange, faulty)]
                        break
        has = np.array([[f in one.faults for f in FAULTS] for _, one in drawn], dtype=bool)
        unclear = np.array([[f in one.unclear for f in FAULTS] for _, one in drawn], dtype=bool)
        return cls(
            tuple(exchange.with_response(one.text) for exchange, one in drawn),
            has,
            has | ~unclear,
            tuple(clusters_of(exchange for exchange, _ in drawn)),
        )


def learn_faults(
    features: Floats, made_ones: MadeReplies, seed: int
) -> dict[tuple[str, str], Learner]:
    """A learner for each fault; where it is unclear whether a reply has it, nothing is learned."""
    learners = {}
    for i, fault in enumerate(FAULTS):
        judged = made_ones.known[:, i]
        has = made_ones.has[judged, i]
        weights = np.where(has, 0.5 / max(1, has.sum()), 0.5 / max(1, (~has).sum())) * len(has)
        learners[fault, ALL] = Learner.fit(
            features[judged], has.astype(np.float64), weights, penalty=30.0, seed=seed
        )
    return learners


def out_of_fold(features: Sequence[Floats], halves: Sequence[MadeReplies], seed: int) -> Floats:
    """(replies, faults): of every reply what learners say that saw only the other halves."""
    found = []
    for place, own in enumerate(features):
        others = [other for other in range(len(halves)) if other != place]
        learners = learn_faults(
            np.concatenate([features[other] for other in others]),
            MadeReplies.joined([halves[other] for other in others]),
            seed,
        )
        found.append(np.stack([learners[fault, ALL](own) for fault in FAULTS], axis=1))
    return np.concatenate(found)


def calibrate_faults(said: Floats, made_ones: MadeReplies) -> tuple[Floats, dict[str, float]]:
    """Slopes and offsets of probabilities, and by fault the limit above which it is found."""
    lines, limits = [], {}
    for i, fault in enumerate(FAULTS):
        judged = made_ones.known[:, i] & (made_ones.has[:, i] | made_ones.fine)
        has, seen = made_ones.has[judged, i], said[judged, i]
        each = PRIOR / max(1, has.sum()), (1 - PRIOR) / max(1, (~has).sum())
        slope, offset = logistic_line(seen, has, np.where(has, *each) * len(has))
        lines.append((slope, offset))
        above = np.quantile(said[made_ones.fine, i], 1 - FLAGGED) * slope + offset
        limits[fault] = float(f"{1 / (1 + np.exp(-above)):.6g}")
    return np.array(lines), limits


def logistic_line(
    values: Floats, labels: NDArray[np.bool_], weights: Floats
) -> tuple[float, float]:
    """Slope and offset of the logistic regression of labels on values."""
    if labels.all() or not labels.any():
        return 1.0, 0.0
    sign = np.where(labels, 1.0, -1.0)

    def cost(line: Floats) -> tuple[float, Floats]:
        against = -sign * (line[0] * values + line[1])
        pulls = -sign * weights * special.expit(against)
        slopes = np.array([(pulls * values).sum(), pulls.sum()]) + 2 * FAR * line
        losses = weights * np.logaddexp(0, against)
        return float(losses.sum() + FAR * (line**2).sum()), slopes

    found = optimize.minimize(cost, np.array([1.0, 0.0]), jac=True, method="BFGS")
    slope, offset = found.x
    return float(slope), float(offset)


def report_faults(
    said: Floats, lines: Floats, limits: Mapping[str, float], made_ones: MadeReplies
) -> dict[str, Any]:
    """Of every fault, how often it is found where it was made, and where nothing was."""
    found, clusters = fault_probabilities(said, lines), np.array(made_ones.clusters)
    fine = made_ones.fine
    results: dict[str, Any] = {}
    for i, fault in enumerate(FAULTS):
        there = made_ones.has[:, i]
        flagged = found[:, i] > limits[fault]
        recall = ClusteredRatio.of(flagged[there], clusters[there].tolist()).estimate()
        results[f"{fault} (n={int(there.sum()):,}): recall / good replies flagged"] = (
            f"{recall.text(3)} / {flagged[fine].mean():.3f}"
        )
    above = found > np.array([limits[fault] for fault in FAULTS])
    results["good replies with any fault flagged"] = f"{above[fine].any(1).mean():.3f}"
    return results
