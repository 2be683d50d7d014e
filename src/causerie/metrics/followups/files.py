"""Files that users write by hand: JSON or TOML."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from causerie.errors import CauserieError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_table(path: Path) -> dict[str, Any]:
    """What a file has at its top level; the suffix says whether it is JSON or TOML."""
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
        raise ValueError(f"{twice} is there twice")
    return table


def check_table(value: Any, where: str) -> dict[str, Any]:
    """The value, if it has keys and values."""
    if not isinstance(value, dict):
        raise CauserieError(f"{where} must be a table of keys and values")
    return value


def _parser(path: Path, kind: str) -> Callable[[str], Any]:
    if kind == "json":
        return lambda text: json.loads(text, object_pairs_hook=_once)
    if kind != "toml":
        raise CauserieError(f"{path} is neither JSON nor TOML: name a .json or .toml file")
    return tomllib.loads
