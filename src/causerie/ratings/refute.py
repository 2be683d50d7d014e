"""Tries to refute an effect: what must not change it, changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from causerie.ratings.effect import Effect, estimated
from causerie.ratings.study import Observed, Study, study_of

REPEATS = 20
"""Of everything that is drawn at random."""
PLACEBO, CAUSE, SUBSETS = "placebo signals", "random common causes", "subsets"
EXPECTED = {
    PLACEBO: "intervals that hold 0 when signals fire at random, at least 80%",
    CAUSE: "largest change by a covariate of noise, in standard errors, at most 1",
    SUBSETS: "deviation among four fifths of the users, over what the interval promises, at most 2",
}


@dataclass(frozen=True)
class Refutation:
    """One try to refute an effect; what is expected of it is in `EXPECTED`."""

    name: str
    found: float
    passed: bool


def refute(
    dialogues: Sequence[Observed], signals: Sequence[int], effect: Effect, seed: int = 0
) -> list[Refutation]:
    """Placebo signals, random common causes, and subsets of the users, in that order."""
    rng = np.random.default_rng(seed)
    study = study_of(dialogues, signals)
    holding = _placebo(dialogues, float(study.treated.mean()), rng)
    change = _random_cause(study, effect, seed, rng)
    excess = _subsets(study, effect, seed, rng)
    return [
        Refutation(PLACEBO, holding, holding >= 0.8),
        Refutation(CAUSE, change, change <= 1.0),
        Refutation(SUBSETS, excess, excess <= 2.0),
    ]


def _placebo(dialogues: Sequence[Observed], rate: float, rng: np.random.Generator) -> float:
    """The share of intervals that hold 0 for signals that fire at random, at the rate of the true.

    Nothing in a dialogue causes them and they cost nothing: what is found all the same comes
    from how dialogues are chosen and compared.
    """
    holding = 0
    for _ in range(REPEATS):
        dealt = [
            replace(one, fired=((rng.random(len(one.spoke)) < rate) & one.spoke)[:, None])
            for one in dialogues
        ]
        found = estimated(study_of(dealt, [0]), int(rng.integers(2**31)))
        holding += found.low <= 0 <= found.high
    return holding / REPEATS


def _random_cause(study: Study, effect: Effect, seed: int, rng: np.random.Generator) -> float:
    """The largest change by a trait of users that is noise, in standard errors."""
    changes = []
    for _ in range(REPEATS):
        noise = rng.standard_normal(study.unit.max() + 1)[study.unit]
        more = replace(study, covariates=np.column_stack([study.covariates, noise]))
        changes.append(abs(estimated(more, seed).estimate - effect.estimate))
    return max(changes) / effect.error


def _subsets(study: Study, effect: Effect, seed: int, rng: np.random.Generator) -> float:
    """How much estimates from four fifths of the users differ, over how much they should.

    Without replacement, a share s of a sample has an estimate that deviates from the whole one's
    by sqrt(1/s - 1) standard errors: one half.
    """
    ever = np.bincount(study.unit, study.treated) > 0
    kinds = [np.unique(study.unit[ever[study.unit] == kind]) for kind in (True, False)]
    estimates = []
    for _ in range(REPEATS):
        kept = [rng.permutation(units)[: round(0.8 * len(units))] for units in kinds]
        part = study.part(np.isin(study.unit, np.concatenate(kept)))
        estimates.append(estimated(part, seed).estimate)
    return float(np.std(estimates, ddof=1)) / (0.5 * effect.error)
