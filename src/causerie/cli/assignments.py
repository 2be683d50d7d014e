"""`--set` on the command line: values for the options of metrics and of their training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")


def metric_options(assignments: list[str]) -> dict[str, dict[str, Any]]:
    """`bleu.order=2` gives `{"bleu": {"order": 2}}`; a value is JSON where it can be, else text."""
    options: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        metric, dot, option = target.rpartition(".")
        if not (equals and dot and metric and option):
            raise CauserieError(f"--set {assignment}: write METRIC.OPTION=VALUE")
        options.setdefault(metric, {})[option.replace("-", "_")] = _value(text)
    return options


def with_hypotheses(
    options: dict[str, dict[str, Any]], metrics: str, file: Path | None
) -> dict[str, dict[str, Any]]:
    """The options, and the file for every chosen metric that takes hypotheses."""
    if file is None:
        return options
    from causerie import metrics as registry

    chosen = registry.names() if metrics == "all" else [m.strip() for m in metrics.split(",")]
    takers = [name for name in chosen if "hypotheses" in signature(registry.find(name)).parameters]
    if not takers:
        raise CauserieError(f"none of {metrics} takes --hypotheses: fed, cpmi and cpmi-sym do")
    return options | {name: {"hypotheses": str(file), **options.get(name, {})} for name in takers}


def metric_variant(text: str) -> tuple[str, dict[str, Any]]:
    """`density:distance=classifier` gives `("density", {"distance": "classifier"})`."""
    name, *assignments = text.split(":")
    options = {}
    for assignment in assignments:
        option, equals, value = assignment.partition("=")
        if not (equals and option):
            raise CauserieError(f"{text}: write METRIC:OPTION=VALUE")
        options[option.replace("-", "_")] = _value(value)
    return name, options


def configure(
    config: type[Config], assignments: list[str], defaults: Mapping[str, Any] | None = None
) -> Config:
    """A configuration with `key=value` in place of some of its defaults, or of these."""
    known = [field.name for field in fields(config)]
    hints = get_type_hints(config)
    values: dict[str, Any] = dict(defaults or {})
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.replace("-", "_")
        if not equals:
            raise CauserieError(f"--set {assignment}: write KEY=VALUE")
        if key not in known:
            raise CauserieError(f"--set {assignment}: the settings are {', '.join(known)}")
        value, kinds = _value(text), _kinds(hints[key])
        if float in kinds and type(value) is int:
            value = float(value)
        if value not in kinds and type(value) not in kinds:
            allowed = " or ".join(_NAMES.get(kind, str(kind)) for kind in kinds)
            raise CauserieError(f"--set {assignment}: {key} is {allowed}")
        values[key] = value
    return config(**values)


_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "null",
}


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Types, and values of a Literal, that a setting can have."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _kinds(part))
    return get_args(hint) if get_origin(hint) is Literal else (hint,)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
