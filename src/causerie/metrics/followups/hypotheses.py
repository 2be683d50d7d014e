"""Dimensions and their follow-up hypotheses: those of `hypotheses.json` and users' own.

Users write their own in JSON or TOML.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

from causerie.errors import CauserieError
from causerie.metrics.base import Level

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED = Path(__file__).with_name("hypotheses.json")
OVERALL = "overall"

_SIDES = ("positive", "negative")
_OTHER_NAMES = {"understand": "understanding", "topic-depth": "depth"}
"""Names in FED's hypotheses and judgements."""
_NAME = re.compile(r"\w+(-\w+)*")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A quality with its follow-up hypotheses."""

    name: str
    positive: tuple[str, ...]
    """What a user might say next if the response has the quality."""
    negative: tuple[str, ...]
    """What a user might say next if the response lacks it."""

    @property
    def hypotheses(self) -> tuple[str, ...]:
        return self.positive + self.negative


Dimensions: TypeAlias = Mapping[Level, tuple[Dimension, ...]]


def dimensions(own: Path | None = None) -> Dimensions:
    """Return the shipped dimensions of each level, with those of a user's file.

    A user's dimension replaces the shipped one of the same name or is added at the end. Names
    are compared ignoring case; spaces, underscores and hyphens are equivalent.
    """
    shipped, added = _read(SHIPPED), _read(own) if own else {}
    return {
        level: tuple({**shipped.get(level, {}), **added.get(level, {})}.values())
        for level in get_args(Level)
    }


def _read(path: Path) -> dict[Level, dict[str, Dimension]]:
    """Read the dimensions of a file by level and name; errors name the file and the key."""
    table, levels = read_table(path), get_args(Level)
    if unknown := sorted(table.keys() - set(levels)):
        raise CauserieError(f"{path}: {unknown[0]} is not a level: use {' or '.join(levels)}")
    return {level: _level(table[level], f"{path}: {level}") for level in levels if level in table}


def _level(value: Any, where: str) -> dict[str, Dimension]:
    found: dict[str, Dimension] = {}
    for key, sides in check_table(value, where).items():
        name = dimension_name(key, f"{where}.{key}")
        if name in found:
            raise CauserieError(f"{where}.{key} occurs twice: merge the two")
        found[name] = _dimension(name, sides, f"{where}.{key}")
    return found


def dimension_name(key: str, where: str) -> str:
    """Normalise the name of a dimension; errors name the place of an invalid one."""
    name = re.sub(r"[\s_-]+", "-", key.strip().lower())
    name = _OTHER_NAMES.get(name, name)
    if not _NAME.fullmatch(name):
        raise CauserieError(f"{where} is not a valid name: use letters, digits and hyphens")
    if name == OVERALL:
        raise CauserieError(f"{where} is the name of the mean of all dimensions: rename it")
    return name


def _dimension(name: str, value: Any, where: str) -> Dimension:
    sides = check_table(value, where)
    if unknown := sorted(sides.keys() - set(_SIDES)):
        raise CauserieError(f"{where}.{unknown[0]} is unknown: use {' and '.join(_SIDES)}")
    positive, negative = (_texts(sides.get(side, []), f"{where}.{side}") for side in _SIDES)
    if not positive + negative:
        raise CauserieError(f"{where} has no follow-up: give some as {' or '.join(_SIDES)}")
    if both := set(positive) & set(negative):
        raise CauserieError(f"{where} has {min(both)!r} on both sides: remove it from one")
    return Dimension(name, positive, negative)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise CauserieError(f"{where} must be a list of sentences")
    for place, text in enumerate(value):
        if not (isinstance(text, str) and text.strip() and _is_unicode(text)):
            raise CauserieError(f"{where}[{place}] is not a sentence: write what a user might say")
    said = tuple(text.strip() for text in value)
    if len(set(said)) < len(said):
        raise CauserieError(f"{where} has a sentence twice: each counts once")
    return said


def _is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which JSON allows but tokenizers do not."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def read_table(path: Path) -> dict[str, Any]:
    """Read the top-level table of a JSON or TOML file, by its suffix."""
    kind = path.suffix.removeprefix(".").lower()
    parse = _parser(path, kind)
    try:
        table = parse(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise CauserieError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # bad UTF-8, bad JSON, bad TOML
        raise CauserieError(f"{path} is not valid {kind.upper()}: {error}") from error
    return check_table(table, str(path))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} occurs twice")
    return table


def check_table(value: Any, where: str) -> dict[str, Any]:
    """Return the value if it is a table; raise an error otherwise."""
    if not isinstance(value, dict):
        raise CauserieError(f"{where} must be a table of keys and values")
    return value


def _parser(path: Path, kind: str) -> Callable[[str], Any]:
    if kind == "json":
        return lambda text: json.loads(text, object_pairs_hook=_once)
    if kind != "toml":
        raise CauserieError(f"{path} is neither JSON nor TOML: name a .json or .toml file")
    return tomllib.loads
