"""The formulas of FED and of C-PMI, on average log-likelihoods of sequences.

With c the history, r the response and h a hypothesis, `crh` stands for L(c, r, h), the average
log-likelihood of the sequence of all three (section 4), `ch` for L(c, h), and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from causerie.metrics.followups.hypotheses import Dimension
from causerie.metrics.followups.statistics import Statistics


def nll(crh: float) -> float:
    """FED's scorer of a hypothesis (section 3)."""
    return -crh


def cpmi(crh: float, h: float, ch: float, rh: float) -> float:
    """C-PMI(c, r | h) = log p(c, r, h) p(h) / p(c, h) p(r, h) (section 4)."""
    return crh + h - ch - rh


def cpmi_sym(crh: float, rch: float, h: float, ch: float, rh: float) -> float:
    """The mean of C-PMI(c, r | h) and C-PMI(r, c | h) (section 4)."""
    return (cpmi(crh, h, ch, rh) + cpmi(rch, h, rh, ch)) / 2


def contrast(negative: Sequence[float], positive: Sequence[float]) -> float:
    """A dimension's score from its hypotheses' (section 3).

    The paper prints sums; the published code, with which its numbers were made, takes means, and
    0 where a side has no hypothesis. C-PMI takes the place of the NLL with the same sign.
    """
    return _mean(negative) - _mean(positive)


def overall(values: Mapping[Dimension, float], statistics: Statistics | None) -> float:
    """One number for all dimensions; not a number where there is none to take.

    With statistics: the mean of the dimensions that have some, each z-scored on human
    exchanges. Without: the plain mean of the dimensions that have both positive and negative
    hypotheses, because those with one side alone live on another scale.
    """
    if statistics is None:
        terms = [value for dimension, value in values.items() if _two_sided(dimension)]
    else:
        terms = [
            (value - human.mean) / human.deviation
            for dimension, value in values.items()
            if (human := statistics.get(dimension.name))
        ]
    return fmean(terms) if terms else math.nan


def _two_sided(dimension: Dimension) -> bool:
    return bool(dimension.positive and dimension.negative)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
