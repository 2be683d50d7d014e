"""Examples for rating models: dialogues as z-scored features, with their treatments.

The treatment of a dialogue is the group of signals that its user gave.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from causerie.errors import CauserieError
from causerie.metrics.odes import CLASSES, SIGNALS, THRESHOLD, TREATMENTS
from causerie.ratings.features import COLUMNS, Feature, Floats
from causerie.ratings.log import is_low

if TYPE_CHECKING:
    from numpy.typing import NDArray

Masking: TypeAlias = Literal["random", "paper", "none"]
BEGINNINGS = 3
"""Number of prefixes of each dialogue to learn from."""
HELD_OUT = 6
"""One example in this many is held out for early stopping."""
LEAST = 8
"""Minimum number of rated dialogues to fit a model on."""
NONE = 0
"""The treatment of a dialogue in which no signal fired."""


POSITIVE = ("compliment",)
NEGATIVE = tuple(name for name in TREATMENTS if name not in POSITIVE)
"""Negative signals that are precise enough to count as treatments."""


@dataclass(frozen=True)
class Treatments:
    """Groups of signals; in treatment t, a signal of group t fired (counted from 1).

    The default is one group of the negative signals that are precise enough with real users; the
    paper's group has all signals, compliments included. A dialogue with signals of several groups
    has the first of these treatments, so name the gravest first.
    """

    groups: tuple[tuple[str, ...], ...] = (NEGATIVE,)

    def __post_init__(self) -> None:
        named = [name for group in self.groups for name in group]
        unknown = sorted(set(named) - set(SIGNALS))
        if unknown:
            raise CauserieError(f"unknown signal {unknown[0]!r}: use {', '.join(SIGNALS)}")
        if len(set(named)) < len(named) or not all(self.groups):
            raise CauserieError(
                "every treatment needs a signal, and a signal can be in only one treatment"
            )

    @classmethod
    def parse(cls, text: str) -> Treatments:
        """Parse groups, separated by commas, of signals joined by plus signs.

        `negative` stands for the default's negative signals that no other group names, `paper` for
        all signals in one group.
        """
        if text.strip() == "paper":
            return cls((SIGNALS,))
        groups = [[name.strip() for name in group.split("+")] for group in text.split(",")]
        named = {name for group in groups for name in group}
        rest = [name for name in NEGATIVE if name not in named]
        return cls(
            tuple(
                tuple(one for name in group for one in (rest if name == "negative" else [name]))
                for group in groups
            )
        )

    @property
    def count(self) -> int:
        """Number of treatments, including that of no signal."""
        return len(self.groups) + 1

    def of_pairs(self, probabilities: Floats) -> NDArray[np.int64]:
        """Return the treatment of each turn pair from its odes, with a column per class."""
        fired = fired_signals(probabilities)
        found = np.zeros(len(fired), dtype=np.int64)
        for treatment in reversed(range(1, self.count)):
            columns = [CLASSES.index(name) for name in self.groups[treatment - 1]]
            found[fired[:, columns].any(1)] = treatment
        return found


def of_dialogue(pairs: NDArray[np.int64]) -> int:
    """Return the treatment of a dialogue from those of its pairs."""
    return int(min((t for t in pairs.tolist() if t != NONE), default=NONE))


def fired_signals(probabilities: Floats) -> NDArray[np.bool_]:
    """Return which of the 14 classes fire; none does where nothing is said."""
    fired: NDArray[np.bool_] = np.nan_to_num(probabilities) > THRESHOLD
    return fired


def signals_in(probabilities: Floats) -> tuple[str, ...]:
    """Return the signals that fire in any of the rows, without `other`."""
    fired = fired_signals(probabilities)
    return tuple(name for place, name in enumerate(SIGNALS) if bool(fired[:, place].any()))


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Computes z-scores with the statistics of the fitted log."""

    mean: Floats
    deviation: Floats
    fill: Floats
    """Replacement of missing values, per feature."""

    @classmethod
    def of(cls, features: Sequence[Feature], dialogues: Sequence[Floats]) -> Standardizer:
        """Return the statistics of a log's raw features."""
        rules = np.array([np.nan if f.missing is None else f.missing for f in features])
        rows = np.concatenate(dialogues).astype(np.float64)
        rows = np.where(np.isnan(rows), rules, rows)
        measured = (~np.isnan(rows)).sum(0)
        for feature, count in zip(features, measured, strict=True):
            if feature.source == COLUMNS and not count:
                raise CauserieError(
                    f"no turn has a number {feature.name!r}: omit it from --columns or, if both "
                    f"sides have one, name the side, as in user.{feature.name}"
                )
        total = np.maximum(measured, 1)
        mean = np.nansum(rows, 0) / total
        deviation = np.sqrt(np.nansum((rows - mean) ** 2, 0) / total)
        deviation[deviation < 1e-6] = 1.0  # a constant carries no information
        fill = np.where(np.isnan(rules), mean, rules)
        return cls(*(a.astype(np.float32) for a in (mean, deviation, fill)))

    def __call__(self, raw: Floats) -> Floats:
        filled = np.where(np.isnan(raw), self.fill, raw)
        z: Floats = ((filled - self.mean) / self.deviation).astype(np.float32)
        return z


@dataclass(frozen=True, eq=False)
class Example:
    """A dialogue as features of its turn pairs."""

    features: Floats
    """Z-scores, one row per pair."""
    treatments: NDArray[np.int64]
    """The treatment of each pair."""
    texts: tuple[str, ...]
    """Text of each pair in order, for the model that reads text."""
    rating: float = float("nan")
    """The rating from 1 to 5; NaN if unknown."""
    running: bool = False
    """Whether the dialogue is still running."""

    @property
    def treatment(self) -> int:
        return of_dialogue(self.treatments)

    @property
    def pairs(self) -> int:
        return len(self.features)

    @cached_property
    def summary(self) -> Floats:
        """Average, first, penultimate and last pair, number of pairs and of signals."""
        rows = self.features
        penultimate = rows[-2] if len(rows) > 1 else rows[-1]
        signals = float((self.treatments != NONE).sum())
        counts = np.log1p(np.array([len(rows), signals], dtype=np.float32))
        return np.concatenate([rows.mean(0), rows[0], penultimate, rows[-1], counts])

    def cut(self, pairs: int) -> Example:
        """Return its first pairs as a running dialogue with the same rating; the rest is masked."""
        return replace(
            self,
            running=True,
            features=self.features[:pairs],
            treatments=self.treatments[:pairs],
            texts=self.texts[:pairs],
        )


def split(examples: Sequence[Example], seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Split into training examples and held-out ones for early stopping, by treatment."""
    shuffled = random.Random(seed).sample(list(examples), len(examples))
    order = sorted(shuffled, key=lambda one: one.treatment)
    held = order[HELD_OUT - 1 :: HELD_OUT]
    return [one for place, one in enumerate(order, start=1) if place % HELD_OUT], held


def prefixes(examples: Sequence[Example], masking: Masking, seed: int = 0) -> list[Example]:
    """Return prefixes of dialogues for learning how running dialogues will be rated (3.3.3).

    The paper cuts low-rated dialogues at every signal as if they had ended there, which teaches
    that short dialogues, or those ending with a signal, are low. Ours are cut from all dialogues
    at random and marked as running.
    """
    if masking == "paper":
        return [
            replace(one.cut(place + 1), running=False)
            for one in examples
            if is_low(one.rating)
            for place in np.flatnonzero(one.treatments[:-1] != NONE).tolist()
        ]
    rng = random.Random(seed)
    count = BEGINNINGS if masking == "random" else 0
    return [one.cut(rng.randint(1, one.pairs)) for one in examples for _ in range(count)]


def stratified_batches(
    examples: Sequence[Example], count: int, rng: random.Random
) -> list[list[Example]]:
    """Return batches of about equal size, each with its share of every treatment."""
    batches: list[list[Example]] = [[] for _ in range(count)]
    dealt = 0
    for treatment in sorted({one.treatment for one in examples}):
        group = [one for one in examples if one.treatment == treatment]
        for one in rng.sample(group, len(group)):
            batches[dealt % count].append(one)
            dealt += 1
        for batch in batches:
            if all(one.treatment != treatment for one in batch):
                batch.append(rng.choice(group))
    return batches


def check_examples(train: Sequence[Example], held: Sequence[Example]) -> None:
    """Refuse to learn from too few dialogues, or from unrated ones."""
    examples = [*train, *held]
    if len(examples) < LEAST:
        raise CauserieError(f"{len(examples)} rated dialogues are too few: give at least {LEAST}")
    if any(math.isnan(one.rating) for one in examples):
        raise CauserieError("a model learns only from rated dialogues: omit the others")


def check_treatments(examples: Sequence[Example], count: int) -> None:
    """Check that every head has examples, as it would otherwise predict at random."""
    absent = sorted(set(range(count)) - {one.treatment for one in examples})
    if absent:
        what = f"a signal of treatment {absent[0]} fired" if absent[0] else "no signal fired"
        raise CauserieError(
            f"there is no training dialogue in which {what}: give more dialogues, or fit a "
            "model without treatments, such as lstm"
        )
