"""The metrics that are installed, by name: causerie's own and those of other packages.

A package adds a metric with an entry point in the group `causerie.metrics`. Listing the names
imports none of them.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.models.artifact import artifact_folder, metric_of

if TYPE_CHECKING:
    from causerie.engines import Engines

GROUP = "causerie.metrics"


def names() -> tuple[str, ...]:
    """The names of all installed metrics, sorted."""
    return tuple(sorted(entry_points(group=GROUP).names))


def find(name: str) -> type[Metric]:
    """The metric of that name."""
    found = entry_points(group=GROUP, name=name)
    if not found:
        close = " or ".join(get_close_matches(name, names()))
        hint = f"did you mean {close}? " if close else ""
        raise CauserieError(f"unknown metric {name!r}: {hint}causerie metrics lists them")
    packages = sorted({_package(entry) for entry in found})
    if len(packages) > 1:
        raise CauserieError(
            f"metric {name!r} is defined by {' and '.join(packages)}: uninstall all but one"
        )
    (entry, *_) = found
    try:
        metric = entry.load()
    except Exception as error:  # another package's code may fail in any way
        raise CauserieError(
            f"metric {name!r} of package {packages[0]} cannot be imported "
            f"({type(error).__name__}: {error}): repair or uninstall that package"
        ) from error
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise CauserieError(
            f"metric {name!r} of package {packages[0]} is not a subclass of "
            "causerie.Metric: repair or uninstall that package"
        )
    return metric


def load(name: str, engines: Engines | None = None, **options: Any) -> Metric:
    """The metric of that name, ready to score.

    The folder of an artifact stands for the metric that was trained there. Metrics that are
    given the same `engines` share their networks. Options are the metric's own, as in
    `load("bleu", order=2)`.
    """
    if name not in names() and (folder := artifact_folder(name)):
        name, options = metric_of(folder), {"artifact": str(folder), **options}
    metric = find(name)
    known = list(inspect.signature(metric).parameters)[1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise CauserieError(f"metric {name!r} has no option {unknown[0]!r}: {has}")
    if engines is None:
        from causerie.engines import Engines

        engines = Engines()
    try:
        loaded = metric(engines, **options)
    except (TypeError, ValueError) as error:
        raise CauserieError(f"metric {name!r} cannot use its options: {error}") from error
    loaded.options = options
    return loaded


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module
