"""The registry of installed metrics: causerie's own and those of other packages, by name.

A package adds a metric with an entry point in the group `causerie.metrics`. Listing the names
does not import the metrics.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from causerie.errors import CauserieError
from causerie.metrics.base import Metric
from causerie.models.artifact import artifact_folder, metric_of
from causerie.options import make

if TYPE_CHECKING:
    from causerie.training.trainable import Trainable

GROUP = "causerie.metrics"


def names() -> tuple[str, ...]:
    """Return the sorted names of all installed metrics."""
    return tuple(sorted(entry_points(group=GROUP).names))


def find(name: str) -> type[Metric]:
    """Return the class of the metric of that name."""
    found = entry_points(group=GROUP, name=name)
    if not found:
        close = " or ".join(get_close_matches(name, names()))
        hint = f"did you mean {close}? " if close else ""
        raise CauserieError(f"unknown metric {name!r}: {hint}`causerie metrics` lists all of them")
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
    if problem := _problem(metric):
        raise CauserieError(
            f"metric {name!r} of package {packages[0]} {problem}: repair or uninstall that package"
        )
    return metric  # type: ignore[no-any-return]


def load_metric(name: str, **options: Any) -> Metric:
    """Return a metric with options, as in `load_metric("bleu", order=2)`.

    The folder (or the name) of an artifact stands for the metric that it belongs to.
    """
    if name not in names() and (folder := artifact_folder(name)):
        name, options = metric_of(folder), {"artifact": name, **options}
    return make(find(name), options, f"metric {name!r}")


def trainable(name: str) -> type[Trainable]:
    """Return what `causerie train` trains by that name: a metric, or the language model."""
    from causerie.engines.language import LM
    from causerie.training.trainable import Trainable

    if name == LM:
        from causerie.metrics.followups.language import LanguageModel

        return LanguageModel
    found = find(name)
    if not issubclass(found, Trainable):
        raise CauserieError(f"metric {name} has nothing to train: name a trained metric")
    return found


def _problem(metric: Any) -> str | None:
    """Return why a class is not a valid metric; None if it is one."""
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        return "is not a subclass of causerie.Metric"
    assert is_dataclass(metric)
    known = {one.name for one in fields(metric)}
    hints = get_type_hints(metric)
    forgotten = [n for n in get_annotations(metric) if n not in known]
    if any("ClassVar" not in str(get_origin(hints[n]) or hints[n]) for n in forgotten):
        return "has options but is not decorated with @dataclass(frozen=True)"
    if metric.score_exchanges is Metric.score_exchanges and metric.score_one is Metric.score_one:
        return "has neither score_one nor score_exchanges"
    return None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module
