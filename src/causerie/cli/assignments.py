"""`--set` on the command line: values for the options of metrics and of trainings."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from causerie.errors import CauserieError

Config = TypeVar("Config")


def assignment(text: str, form: str) -> tuple[str, Any]:
    """`key=value` as key and value; the value is JSON where it can be, else text."""
    key, equals, value = text.partition("=")
    if not (equals and key):
        raise CauserieError(f"--set {text}: write {form}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def metric_options(assignments: list[str]) -> dict[str, dict[str, Any]]:
    """`bleu.order=2` gives `{"bleu": {"order": 2}}`."""
    options: dict[str, dict[str, Any]] = {}
    for text in assignments:
        target, value = assignment(text, "METRIC.OPTION=VALUE")
        metric, dot, option = target.rpartition(".")
        if not (dot and metric and option):
            raise CauserieError(f"--set {text}: write METRIC.OPTION=VALUE")
        options.setdefault(metric, {})[option.replace("-", "_")] = value
    return options


def configure(config: type[Config], assignments: list[str]) -> Config:
    """A configuration dataclass with some of its fields set."""
    types = get_type_hints(config)
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for text in assignments:
        key, value = assignment(text, "KEY=VALUE")
        key = key.replace("-", "_")
        if key not in known:
            raise CauserieError(f"--set {text}: the settings are {', '.join(known)}")
        if isinstance(value, int) and not isinstance(value, bool) and types[key] is float:
            value = float(value)
        if not isinstance(value, types[key]):
            raise CauserieError(f"--set {text}: {key} is of type {types[key]}")
        values[key] = value
    return config(**values)
