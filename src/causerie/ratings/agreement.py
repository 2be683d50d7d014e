"""Agreement between two ratings of the same dialogues, such as by users and by an expert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from causerie.errors import CauserieError
from causerie.ratings.log import LOW, RatedDialogue, rating_in, to_scale
from causerie.render.tables import Cell, Table
from causerie.stats import (
    Estimate,
    correlation_of_clusters,
    mean_of_clusters,
    means,
    pearson,
    spearman,
    with_intervals,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 3
"""Minimum number of dialogues with both ratings."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of two ratings from 1 to 5; intervals are clustered by user if known."""

    dialogues: int
    pearson: Estimate
    spearman: Estimate
    difference: Estimate
    """Mean of the other rating minus the user's."""
    same_side: Estimate
    """Share of dialogues that are low for both, or for neither."""
    chance_corrected: float
    """Agreement on low ratings as Cohen's kappa."""


def both_ratings(
    dialogues: Sequence[RatedDialogue], other: str, scale: tuple[float, float]
) -> tuple[list[RatedDialogue], NDArray[np.float64], NDArray[np.float64]]:
    """Return the dialogues with both ratings, the users' ratings and the others, from 1 to 5."""
    found: list[tuple[RatedDialogue, float, float]] = []
    for one in dialogues:
        given = rating_in(one.dialogue, other)
        if one.rating is not None and given is not None:
            found.append((one, one.rating, to_scale(given, scale)))
    if len(found) < LEAST:
        raise CauserieError(
            f"only {len(found)} dialogues have a rating and {other}: give at least {LEAST}"
        )
    some, first, second = zip(*found, strict=True)
    return list(some), np.array(first), np.array(second)


def agreement(
    dialogues: Sequence[RatedDialogue],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    seed: int = 0,
) -> Agreement:
    """Compare two ratings of each dialogue."""
    unit = [one.user or f"dialogue {place}" for place, one in enumerate(dialogues)]
    low, other_low = first < LOW, second < LOW
    same = (low == other_low).astype(np.float64)
    values = np.vstack([second - first, same])
    difference, same_side = with_intervals(
        means(values, "nothing to compare"), mean_of_clusters(values, unit), seed=seed
    )
    expected = low.mean() * other_low.mean() + (1 - low.mean()) * (1 - other_low.mean())
    linear, ranked = (
        with_intervals(
            correlate(second[None], first[None]),
            correlation_of_clusters(second[None], first[None], unit, ranks=ranks),
            seed=seed,
        )[0]
        for correlate, ranks in ((pearson, False), (spearman, True))
    )
    kappa = float((same.mean() - expected) / (1 - expected)) if expected < 1 else float("nan")
    return Agreement(len(first), linear, ranked, difference, same_side, kappa)


def agreement_table(found: dict[str, Agreement]) -> Table:
    """Return a row per comparison."""
    rows: list[list[Cell]] = [
        [
            name,
            one.dialogues,
            one.pearson,
            one.spearman,
            one.difference,
            one.same_side,
            one.chance_corrected,
        ]
        for name, one in found.items()
    ]
    headings = ["", "dialogues", "Pearson", "Spearman", "difference in points of 1 to 5"]
    return Table([*headings, "both low or neither", "kappa"], rows, "Agreement")
