"""What a page draws of a set: points of a scatter plot, and histograms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from causerie.bench.results import Histogram, Sample
from causerie.bench.sets.units import Units
from causerie.stats import FloatArray, unit_of

MOST_POINTS = 500
_BINS = 20
_TAIL = 0.005


def sample(
    units: Units, judgement: FloatArray, scores: Mapping[str, FloatArray], seed: int
) -> Sample:
    """At most `MOST_POINTS` of the judged units, in their order."""
    judged = np.flatnonzero(np.isfinite(judgement))
    if len(judged) > MOST_POINTS:
        generator = np.random.default_rng(seed)
        judged = np.sort(generator.choice(judged, MOST_POINTS, replace=False))
    places = judged.tolist()
    return Sample(
        ids=tuple(units.ids[i] for i in places),
        systems=tuple(units.systems[i] for i in places),
        human_written=tuple(units.human_written[i] for i in places),
        judgement=tuple(float(judgement[i]) for i in places),
        scores={
            name: tuple(float(row[i]) if np.isfinite(row[i]) else None for i in places)
            for name, row in scores.items()
        },
    )


def histogram(values: FloatArray) -> Histogram:
    """Counts in equal bins; the last half per cent of either end falls into the end bins."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Histogram((), ())
    unit = unit_of(finite)
    low, high = np.quantile(finite / unit, [_TAIL, 1 - _TAIL])
    if high - low <= 1e-9 * abs(high):
        # As good as equal: bins need a width that large numbers can be told apart by.
        width = max(0.5, 1e-6 * abs(high))
        low, high = low - width, high + width
    counts, edges = np.histogram(np.clip(finite / unit, low, high), bins=_BINS, range=(low, high))
    return Histogram(tuple((edges * unit).tolist()), tuple(counts.tolist()))
