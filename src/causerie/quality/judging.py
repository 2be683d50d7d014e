"""From features to what people would say: learners, their calibration, and why.

What a learner says is only an order. It becomes a share of judged replies by the out-of-fold
predictions of all judged sets, each counted alike, and a rating by what people gave to replies
of about that share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from causerie.dialogue import Exchange
from causerie.errors import CauserieError
from causerie.metrics.base import Score, Scores
from causerie.models.artifact import Artifact
from causerie.quality.config import Tier
from causerie.quality.dimensions import DIMENSIONS
from causerie.quality.features import Bank, Parts, descriptions
from causerie.quality.learner import Learner
from causerie.training.faulty import FAULTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from causerie.engines import Engines

    Floats = NDArray[np.float64]

OVERALL: Final = "quality"
TARGETS: Final = (OVERALL, *DIMENSIONS)
ALL: Final = "all"
"""The learner that leaves no corpus out."""
SPOILING: Final = ("echo", "self_repetition", "gibberish")
"""Faults with which a reply is worth nothing,"""
SURE: Final = 0.9
"""from this probability on more and more."""
GROUPS: Final = {
    "relevance (density, causes, topics, cosines)": (
        "density",
        "cause",
        "grade",
        "topics",
        "stock",
        "tuned",
    ),
    "faults that a reader finds": ("slip",),
    "wording (length, repetition, echo, questions)": ("text", "idf"),
    "language model": ("lm",),
}
"""Features by what they tell, for explanations."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the order of one target means."""

    quantiles: Floats
    """Of what learners said of replies of corpora that they had not seen."""
    ratings: Floats
    """Mean rating from 1 to 5 at equal steps of the share; empty but for the overall quality."""
    deviations: Floats
    """Standard deviation of single replies' mean ratings around that."""

    def share(self, said: Floats) -> Floats:
        """How many in a hundred judged replies people liked less, 0 to 100."""
        found: Floats = np.interp(said, self.quantiles, np.linspace(0, 100, len(self.quantiles)))
        return found

    def at(self, values: Floats, share: Floats) -> Floats:
        """Values at equal steps of the share, in between."""
        found: Floats = np.interp(share, np.linspace(0, 100, len(values)), values)
        return found


class Judge:
    """Everything of one artifact, with the networks of its parts.

    Learners are by target and the corpus that they left out; those of faults left out none.
    `lines` make probabilities of what the latter say.
    """

    def __init__(
        self,
        parts: Parts,
        bank: Bank,
        tier: Tier,
        learners: Mapping[tuple[str, str], Learner],
        calibrations: Mapping[str, Calibration],
        lines: Floats,
    ) -> None:
        self.parts, self.bank, self.tier = parts, bank, tier
        self.learners, self.calibrations, self.lines = learners, calibrations, lines
        self._names = list(descriptions(tier))

    @classmethod
    def restore(cls, engines: Engines, artifact: Artifact) -> Judge:
        parts = Parts(engines)
        if (theirs := artifact.options["parts"]) != parts.digests:
            changed = [name for name, digest in parts.digests.items() if theirs.get(name) != digest]
            raise CauserieError(
                f"quality was learned with another {' and '.join(changed)}: train it again"
            )
        arrays = {key: t.double().numpy() for key, t in artifact.statistics.items()}
        tier: Tier = artifact.options["tier"]
        names = sorted({tuple(key.split("/")[1:3]) for key in arrays if key.startswith("learner/")})
        learners = {
            (one[0], one[1]): Learner.from_arrays(_under(arrays, "/".join(("learner", *one))))
            for one in names
        }
        calibrations = {
            target: Calibration(**_under(arrays, f"calibration/{target}")) for target in TARGETS
        }
        bank = Bank(
            arrays["bank/stock"].astype(np.float32), arrays["bank/tuned"].astype(np.float32)
        )
        return cls(parts, bank, tier, learners, calibrations, arrays["lines"])

    def tensors(self) -> dict[str, torch.Tensor]:
        """All that an artifact keeps of it."""
        arrays: dict[str, NDArray[Any]] = {
            "bank/stock": self.bank.stock,
            "bank/tuned": self.bank.tuned,
            "lines": self.lines,
        }
        for (target, left_out), learner in self.learners.items():
            arrays |= {
                f"learner/{target}/{left_out}/{key}": a for key, a in learner.arrays().items()
            }
        for target, one in self.calibrations.items():
            arrays |= {f"calibration/{target}/{key}": value for key, value in vars(one).items()}
        return {key: torch.from_numpy(np.array(value)) for key, value in arrays.items()}

    def __call__(
        self, exchanges: Sequence[Exchange], without: str | None, *, explain: bool
    ) -> list[Scores]:
        """One row of scores per exchange, in the order of the metric's columns."""
        features = self.parts.measure(exchanges, self.bank, self.tier)
        said = {target: self._learner(target, without)(features) for target in TARGETS}
        shares = {target: self.calibrations[target].share(said[target]) for target in TARGETS}
        shares[OVERALL] = shares[OVERALL] * self.sound(features)
        overall = self.calibrations[OVERALL]
        ratings = overall.at(overall.ratings, shares[OVERALL])
        deviations = overall.at(overall.deviations, shares[OVERALL])
        why = self._why(features, without) if explain else [None] * len(exchanges)
        rows: list[Scores] = []
        for i in range(len(exchanges)):
            others = (Score.of(float(shares[name][i])) for name in DIMENSIONS)
            quality = Score.of(float(shares[OVERALL][i]), why[i])
            rows.append(
                (quality, Score.of(float(ratings[i])), Score.of(float(deviations[i])), *others)
            )
        return rows

    def faults(self, exchanges: Sequence[Exchange]) -> Floats:
        """The probability of each fault, one row per exchange."""
        return self._faults(self.parts.measure(exchanges, self.bank, self.tier), FAULTS)

    def sound(self, features: Floats) -> Floats:
        """What is left of a reply's quality: nothing where a fault that spoils it is certain.

        Hardly any judged reply has such a fault, so the learners cannot know what it is worth.
        """
        certain = (self._faults(features, SPOILING) - SURE) / (1 - SURE)
        left: Floats = (1 - np.clip(certain, 0, 1)).prod(axis=1)
        return left

    def _faults(self, features: Floats, faults: Sequence[str]) -> Floats:
        said = np.stack([self.learners[fault, ALL](features) for fault in faults], axis=1)
        return fault_probabilities(said, self.lines[[FAULTS.index(fault) for fault in faults]])

    def _learner(self, target: str, without: str | None) -> Learner:
        return self.learners.get((target, without or ALL)) or self.learners[target, ALL]

    def _why(self, features: Floats, without: str | None) -> list[dict[str, Any]]:
        """What each group of features adds to the share, against its usual values."""
        learner, calibration = self._learner(OVERALL, without), self.calibrations[OVERALL]
        whole = calibration.share(learner(features))
        adds = {}
        for group, prefixes in GROUPS.items():
            own = [i for i, name in enumerate(self._names) if name.split(".")[0] in prefixes]
            if own:
                usual = features.copy()
                usual[:, own] = learner.usual[own]
                adds[group] = whole - calibration.share(learner(usual))
        return [
            {
                "tier": self.tier,
                "adds": {group: round(float(values[i]), 1) for group, values in adds.items()},
            }
            for i in range(len(features))
        ]


def fault_probabilities(said: Floats, lines: Floats) -> Floats:
    """What learners of faults say, as probabilities; `lines` are slopes and offsets."""
    found: Floats = 1 / (1 + np.exp(-(said * lines[:, 0] + lines[:, 1])))
    return found


def _under(arrays: Mapping[str, Floats], start: str) -> dict[str, Floats]:
    """The arrays whose names begin like that, by the rest of their names."""
    return {
        key.removeprefix(f"{start}/"): value
        for key, value in arrays.items()
        if key.startswith(f"{start}/")
    }
