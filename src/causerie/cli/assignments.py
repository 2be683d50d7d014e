"""`--set` on the command line: values for the options of metrics and of their training."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

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


def configure(config: type[Config], assignments: list[str]) -> Config:
    """A configuration with `key=value` in place of some of its defaults."""
    known = {field.name: field for field in fields(config)}
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.replace("-", "_")
        if not equals:
            raise CauserieError(f"--set {assignment}: write KEY=VALUE")
        if key not in known:
            raise CauserieError(f"--set {assignment}: the settings are {', '.join(known)}")
        value, default = _value(text), known[key].default
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if default is not None and type(value) is not type(default):
            raise CauserieError(
                f"--set {assignment}: {key} is {_article(type(default))}, as in {key}={default}"
            )
        values[key] = value
    return config(**values)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _article(kind: type) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
    return names[kind]
