"""A plan says what is to be computed: which metrics, with which settings, at which level.

It is data: frozen, compared by value, to and from JSON, and it can be sent to another process or
machine, where a `Scorer` carries it out. Its signature, which names everything that decides the
numbers, is told without opening any weights.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, get_args

from causerie._version import __version__
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError, CauserieWarning
from causerie.metrics import find, load_metric, names
from causerie.metrics.base import Column, Level, Metric
from causerie.options import changed, make, parse_assignments

MetricLike: TypeAlias = str | Metric
Metrics: TypeAlias = MetricLike | Iterable[MetricLike] | Mapping[str, MetricLike]
"""Names ("cosine,bleu"), metrics, or either by the alias that is to name its columns."""

DEFAULT_METRICS = "quality,faults"
GROUPS = {"papers": ("density", "causalscore", "grade", "fed", "cpmi", "cpmi-sym")}
"""Names that stand for several metrics; `all` stands for all of them."""

NEEDS = {"encoder": "encoder", "lm": "language model", "turn_format": "language model"}
"""Choices of networks, and what a metric needs for them to matter."""


@dataclass(frozen=True)
class Plan:
    """What a scorer is to compute."""

    metrics: Mapping[str, Metric]
    """By alias, which names their columns: two metrics of one name need two aliases."""
    settings: Settings = field(default_factory=Settings)
    level: Level = "turn"
    speaker: str | None = None
    """Whose responses: a speaker, a role, `all`; None is the system where it is known who that
    is, and everybody where it is not."""

    def __post_init__(self) -> None:
        if self.level not in get_args(Level):
            choices = " or ".join(get_args(Level))
            raise CauserieError(f"unknown level {self.level!r}: use {choices}")
        if wrong := [m for m in self.metrics.values() if not isinstance(m, Metric)]:
            raise CauserieError(f"{wrong[0]!r} is not a metric: `Plan.of` takes metrics by name")
        if self.settings.research:
            chosen = {alias: metric.for_research() for alias, metric in self.metrics.items()}
            object.__setattr__(self, "metrics", chosen)
        if not self.metrics:
            raise CauserieError("no metric is named: `causerie metrics` lists them")
        columns = [name for alias in self.metrics for name in self.columns_of(alias)]
        if twice := {name for name in columns if columns.count(name) > 1}:
            raise CauserieError(
                f"two metrics both give a column {min(twice)}: name one of them ALIAS=METRIC"
            )

    @classmethod
    def of(
        cls,
        metrics: Metrics = DEFAULT_METRICS,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        settings: Settings | None = None,
        level: Level = "turn",
        speaker: str | None = None,
    ) -> Plan:
        """A plan from names: `Plan.of("cosine,bleu2=bleu:order=2")`.

        `options` are by alias. `all` stands for every installed metric.
        """
        return cls(metrics_by_alias(metrics, options or {}), settings or Settings(), level, speaker)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Every column of scores, in order: `alias`, or `alias.quality` for each quality."""
        return {
            name: column
            for alias in self.metrics
            for name, column in self.columns_of(alias).items()
        }

    @cached_property
    def drawings(self) -> Mapping[str, str]:
        """By column, how pages draw its explanations; only of those that are drawn."""
        return {
            name: metric.drawing
            for alias, metric in self.metrics.items()
            if metric.drawing
            for name in self.columns_of(alias)
        }

    def columns_of(self, alias: str) -> dict[str, Column]:
        """The columns of one metric."""
        return {
            f"{alias}.{column.name}" if column.name else alias: column
            for column in self.metrics[alias].columns(self.level)
        }

    @cached_property
    def signatures(self) -> Mapping[str, str]:
        """By alias, everything that decides the numbers of a metric besides the input."""
        engines = Engines(self.settings)
        return {
            alias: ("" if alias == metric.name else f"{alias}=") + metric.signature(engines)
            for alias, metric in self.metrics.items()
        }

    @cached_property
    def signature(self) -> str:
        """Everything that decides the numbers besides the input."""
        parts = [f"causerie|{__version__}", *self.signatures.values()]
        if self.level != "turn":
            parts.append(f"level|{self.level}")
        if self.speaker is not None:
            parts.append(f"speaker|{self.speaker}")
        return " ".join(parts)

    def check_settings(self) -> None:
        """Refuse a choice of network that none of the metrics uses; say which do not use it."""
        exact = [alias for alias, metric in self.metrics.items() if getattr(metric, "exact", False)]
        if exact and self.settings.backend == "onednn-bf16":
            warnings.warn(
                f"--backend onednn-bf16 would change the scores of {', '.join(exact)} too much: "
                "onednn computes it, in float32",
                CauserieWarning,
                stacklevel=2,
            )
        for name in NEEDS:
            chosen = getattr(self.settings, name)
            if chosen == getattr(Settings(), name):
                continue
            option = f"--{name.replace('_', '-')}"
            without = [alias for alias, m in self.metrics.items() if name not in m.uses]
            own = [alias for alias in without if NEEDS[name] in self.metrics[alias].needs]
            if own and len(without) < len(self.metrics):
                warnings.warn(
                    f"{option} {chosen} has no effect on {', '.join(own)}: trained metrics use the "
                    "networks that they were trained with",
                    CauserieWarning,
                    stacklevel=2,
                )
            if len(without) == len(self.metrics):
                raise CauserieError(
                    f"{option} {chosen} has no effect on {', '.join(self.metrics)}: leave it out "
                    "(trained metrics use the networks that they were trained with)"
                )

    def to_json(self) -> str:
        """The plan as text that `from_json` reads; only what is not a default is written."""
        written = {}
        for alias, metric in self.metrics.items():
            if metric.name not in names():
                raise CauserieError(
                    f"metric {metric.name!r} is not registered, so a plan cannot name it: give "
                    "its package an entry point in the group causerie.metrics"
                )
            written[alias] = {"metric": metric.name, **changed(metric)}
        content = {
            "causerie": __version__,
            "metrics": written,
            "settings": {
                key: str(value) if isinstance(value, Path) else value
                for key, value in changed(self.settings).items()
            },
            "level": self.level,
            "speaker": self.speaker,
        }
        return json.dumps(content, ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote."""
        try:
            content = json.loads(text)
            metrics = {alias: dict(options) for alias, options in content["metrics"].items()}
            settings = dict(content.get("settings", {}))
            if settings.get("models_dir"):
                settings["models_dir"] = Path(settings["models_dir"])
            made = {a: load_metric(o.pop("metric"), **o) for a, o in metrics.items()}
            level, speaker = content.get("level", "turn"), content.get("speaker")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CauserieError(f"this is not a plan of causerie ({error})") from error
        return cls(made, make(Settings, settings, "a plan"), level, speaker)


def metrics_by_alias(
    metrics: Metrics, options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Metric]:
    """The metrics that somebody named in one of the ways that people name them."""
    found: dict[str, Metric] = {}
    for alias, one in _named(metrics):
        if isinstance(one, Metric):
            made, name = one, alias or one.name
            if options.get(name):
                raise CauserieError(f"options for {name}: it is given with its options already")
        else:
            written, name, own = _parsed(one)
            name = alias or name
            made = load_metric(written, **{**own, **options.get(name, {})})
            if name == written and name not in names():
                name = made.name  # an artifact's folder is no name for a column
        if name in found and found[name] != made:
            raise CauserieError(
                f"two metrics are called {name}: name one of them ALIAS=METRIC, as in "
                f"{name}2={made.name}"
            )
        found[name] = made
    if unused := sorted(set(options) - set(found)):
        raise CauserieError(
            f"options are given for {', '.join(unused)}, but the metrics are {', '.join(found)}"
        )
    return found


def aliases_of(metrics: str, name: str) -> list[str]:
    """What the metrics of that name are called in a list such as "cosine,j2=judge"."""
    parsed = (_parsed(one) for _, one in _named(metrics) if isinstance(one, str))
    return [alias or written for written, alias, _ in parsed if written == name]


def _named(metrics: Metrics) -> list[tuple[str | None, MetricLike]]:
    if isinstance(metrics, Mapping):
        given: list[tuple[str | None, MetricLike]] = list(metrics.items())
    elif isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable):
        given = [(None, metrics)]
    else:
        given = [(None, one) for one in metrics]
    named: list[tuple[str | None, MetricLike]] = []
    for alias, one in given:
        if isinstance(one, Metric) or (alias is not None and isinstance(one, str)):
            named.append((alias, one))
        elif isinstance(one, str):
            listed = [name.strip() for name in one.split(",") if name.strip()]
            groups = {**GROUPS, **({"all": _all()} if "all" in listed else {})}
            named += [(None, m) for name in listed for m in groups.get(name, (name,))]
        else:
            raise CauserieError(
                f"a metric is named or given as a causerie.Metric, not as {type(one).__name__}"
            )
    return named


def _all() -> list[str]:
    """Every metric that can be used without options: there is no default ranker."""
    return [name for name in names() if "ranker" not in find(name).needs]


def _parsed(text: str) -> tuple[str, str, dict[str, Any]]:
    """`b2=bleu:order=2` gives the metric bleu, the alias b2 and its options."""
    head, *assignments = text.split(":")
    alias, equals, metric = head.partition("=")
    if equals and not (alias.strip() and metric.strip()):
        raise CauserieError(f"{text}: write ALIAS=METRIC:OPTION=VALUE")
    name = (metric if equals else alias).strip()
    return name, alias.strip(), parse_assignments(assignments)


def settings_of(**choices: Any) -> Settings:
    """Settings from named choices; an unknown one is refused with the known ones."""
    known = {one.name for one in fields(Settings)}
    return make(Settings, {k: v for k, v in choices.items() if k in known or v}, "Settings")
