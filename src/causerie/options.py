"""Options as dataclass fields: declared once, they say their help, their type and their checks.

Metrics and training configurations are frozen dataclasses. What a field may hold is its type:
a `Literal` lists its choices, `int | None` may be left open. The command line reads the same
fields, so an option needs no second description anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from causerie.errors import CauserieError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Made = TypeVar("Made", bound="DataclassInstance")

_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "null",
}


def option(default: Any, help: str, *, file: bool = False, least: float | None = None) -> Any:
    """A field with a sentence about it.

    `file` marks the name of a file or folder, `least` is the lowest value that a number can have.
    """
    return field(default=default, metadata={"help": help, "file": file, "least": least})


def is_file(one: Field[Any]) -> bool:
    """Whether an option names a file: a signature says what is in it, not where it is."""
    return bool(one.metadata.get("file"))


def changed(made: DataclassInstance) -> dict[str, Any]:
    """The options that are not at their defaults."""
    return {
        one.name: value
        for one in fields(made)
        if (value := getattr(made, one.name)) != one.default or one.default is MISSING
    }


def check_types(made: DataclassInstance) -> None:
    """Refuse a value that is not of its field's type, none of its choices, or too low."""
    hints = get_type_hints(type(made))
    for one in fields(made):
        value, kinds = getattr(made, one.name), kinds_of(hints[one.name])
        if not _fits(value, kinds):
            raise CauserieError(f"{one.name} is {_allowed(kinds)}, not {value!r}")
        least = one.metadata.get("least")
        if least is not None and value is not None and not value >= least:
            raise CauserieError(f"{one.name} is at least {least}, not {value}")


def make(kind: type[Made], values: Mapping[str, Any], what: str) -> Made:
    """A dataclass from named values; an unknown name is refused with the known ones."""
    known = [one.name for one in fields(kind)]
    if unknown := sorted(set(values) - set(known)):
        close = get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise CauserieError(f"{what} has no option {unknown[0]!r}: {hint}{has}")
    hints = get_type_hints(kind)
    exact = {  # 1 for a number that may have decimals is 1.0, however it was written
        key: float(value) if type(value) is int and _is_float(hints[key]) else value
        for key, value in values.items()
    }
    try:
        return kind(**exact)
    except (TypeError, ValueError) as error:
        raise CauserieError(f"{what} cannot use its options: {error}") from error


def parse(text: str) -> Any:
    """A value from the command line: JSON where it can be, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """`["order=2"]` gives `{"order": 2}`; hyphens in names are underscores."""
    values = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not (equals and key.strip()):
            raise CauserieError(f"{assignment}: write KEY=VALUE")
        values[key.strip().replace("-", "_")] = parse(text)
    return values


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """The types, and the values of a Literal, that an option can have."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in kinds_of(part))
    return get_args(hint) if get_origin(hint) is Literal else (hint,)


def _is_float(hint: Any) -> bool:
    return float in (kinds := kinds_of(hint)) and int not in kinds


def _fits(value: Any, kinds: tuple[Any, ...]) -> bool:
    if any(value is kind or (type(value) is type(kind) and value == kind) for kind in kinds):
        return True
    types = [kind for kind in kinds if isinstance(kind, type)]
    unchecked = len(types) + sum(isinstance(k, (str, int)) for k in kinds) < len(kinds)
    return (
        unchecked  # a generic type such as Mapping[str, float] is its owner's to check
        or type(value) in types
        or (float in types and type(value) is int)
        or any(isinstance(value, t) for t in types if t not in _NAMES)
    )


def _allowed(kinds: tuple[Any, ...]) -> str:
    return " or ".join(_NAMES.get(kind, str(kind)) for kind in kinds)


def choices_of(hint: Any) -> str:
    """What an option of this type can be, in words."""
    return _allowed(kinds_of(hint))
