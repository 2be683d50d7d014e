"""The fields of one record, whatever file they come from, become a dialogue or an exchange."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import cast

from causerie.dialogue import Dialogue, Exchange, Role, Turn
from causerie.io.jsontext import encodable, parse, plain
from causerie.io.messages import read_messages
from causerie.io.rejected import RecordError

_COMMON = frozenset(
    {"id", "rating", "date", "system", "background", "metadata", "reference", "references"}
)
FIELDS = _COMMON | {"context", "response", "turns", "messages", "conversations"}
"""Every name that means something at the top of a record; others go to the metadata."""

ROLES: Mapping[str, Role] = {
    "user": "user", "human": "user", "bot": "system", "system": "system", "assistant": "system",
}  # fmt: skip
"""Of speakers whose names say it."""

_JSON_LIST = re.compile(r'\s*\[\s*["{\]]')


def to_record(fields: Mapping[str, object], default_id: str) -> Dialogue | Exchange:
    """Read the fields by the shape they have; raises `RecordError`.

    `turns` is causerie's own shape, `messages` OpenAI's, `conversations` ShareGPT's;
    `context` with `response` is one exchange, whose context is not scored. References beside
    any of them are for the last turn.
    """
    try:
        if fields.get("turns") is not None:
            turns = tuple(_each("turn", _list(fields["turns"], "turns")))
            return _dialogue(fields, turns, {"turns"}, default_id)
        for name in ("messages", "conversations"):
            if fields.get(name) is not None:
                chat = read_messages(_list(fields[name], name))
                extra = {"tool_messages": chat.tool_messages} if chat.tool_messages else {}
                return _dialogue(fields, chat.turns, {name}, default_id, chat.background, extra)
        if fields.get("context") is not None or fields.get("response") is not None:
            turns = _exchange_turns(fields)
            used = {"context", "response"}
            return Exchange(_dialogue(fields, turns, used, default_id), len(turns) - 1)
    except RecursionError:
        raise RecordError("nested too deeply") from None
    raise RecordError('has no "turns", "messages", "conversations", or "context" and "response"')


def _dialogue(
    fields: Mapping[str, object],
    turns: tuple[Turn, ...],
    used: set[str],
    default_id: str,
    background: tuple[str, ...] = (),
    metadata: Mapping[str, object] | None = None,
) -> Dialogue:
    if not turns:
        raise RecordError("has no turns")
    given = fields.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise RecordError(f"metadata must be an object, not {type(given).__name__}")
    others = {k: v for k, v in fields.items() if k not in _COMMON and k not in used}
    rating = fields.get("rating")
    last = turns[-1]
    if references := _references(fields):
        last = replace(last, references=references + last.references)
    return Dialogue(
        id=_label(fields.get("id"), "id") or default_id,
        turns=(*turns[:-1], last),
        rating=None if rating is None else _number(rating, "rating"),
        date=_label(fields.get("date"), "date"),
        system=_label(fields.get("system"), "system"),
        background=_texts(fields.get("background"), "background") + background,
        metadata=cast(
            "dict[str, object]", plain({**(given or {}), **others, **(metadata or {})}, "metadata")
        ),
    )


def _exchange_turns(fields: Mapping[str, object]) -> tuple[Turn, ...]:
    """Context and response as turns; strings are spoken in turn by A and B, the response by B."""
    context, response = fields.get("context"), fields.get("response")
    if context is None or response is None:
        raise RecordError(f"{'context' if context is None else 'response'} is missing")
    if isinstance(context, str):
        context = (
            _json_list(context, "context")
            if _JSON_LIST.match(context)
            else [line for line in context.split("\n") if line.strip()]
        )
    items = _list(context, "context")
    named = [item["speaker"] for item in items if isinstance(item, dict) and "speaker" in item]
    if isinstance(response, dict):
        speaker = response.get("speaker")
        other = "B" if speaker == "A" else "A"
    else:
        # Where the context names its speakers, the response is by the last one to listen.
        other = named[-1] if named else "A"
        listeners = [name for name in named if name != other]
        speaker = listeners[-1] if listeners else "A" if other == "B" else "B"
        response = {"speaker": speaker, "text": response}
    spoken = [
        {"speaker": other if (len(items) - index) % 2 else speaker, "text": item}
        if isinstance(item, str)
        else item
        for index, item in enumerate(items)
    ]
    try:
        last = turn_of(response)
    except RecordError as bad:
        raise RecordError(f"response: {bad}") from None
    return (*_each("context turn", spoken), last)


def _each(name: str, items: Sequence[object]) -> list[Turn]:
    turns = []
    for index, item in enumerate(items):
        try:
            turns.append(turn_of(item))
        except RecordError as bad:
            raise RecordError(f"{name} {index}: {bad}") from None
    return turns


def turn_of(item: object) -> Turn:
    """One turn, as `turns` has them; raises `RecordError`."""
    if not isinstance(item, dict):
        raise RecordError(f"must be an object, not {type(item).__name__}")
    speaker = text(item.get("speaker"), "speaker")
    said = text(item.get("text"), "text")
    named = ROLES.get(speaker.lower())
    if len(item) == 2:  # most turns have nothing else
        return Turn(speaker, said, named)
    role = item.get("role")
    if role is None:
        role = named
    if role == "assistant":
        role = "system"
    if role not in (None, "user", "system"):
        raise RecordError('role must be "user" or "system"')
    features = item.get("features")
    if features is not None and not isinstance(features, dict):
        raise RecordError(f"features must be an object, not {type(features).__name__}")
    return Turn(
        speaker,
        said,
        cast("Role | None", role),
        _label(item.get("time"), "time"),
        _references(item),
        {
            text(name, "name of a feature"): _number(value, f"feature {name!r}")
            for name, value in (features or {}).items()
            if value is not None
        },
    )


def text(value: object, name: str) -> str:
    """A string with something in it, without the white space around it."""
    if not isinstance(value, str):
        raise RecordError(
            f"{name} is missing"
            if value is None
            else f"{name} must be a string, not {type(value).__name__}"
        )
    value = value.strip()
    if not value:
        raise RecordError(f"{name} is empty")
    if "\0" in value:
        raise RecordError(f"{name} has a NUL character")
    return encodable(value, name)


def _label(value: object, name: str) -> str | None:
    """A short text such as an id, which may have been written as a number or a date."""
    if value is None or value == "":
        return None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _number(value, name)
        return str(value)
    return text(value, name)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RecordError(f"{name} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RecordError(f"{name} must be a finite number")
    return number


def _references(fields: Mapping[str, object]) -> tuple[str, ...]:
    return _texts(fields.get("reference"), "reference") + _texts(
        fields.get("references"), "references"
    )


def _texts(value: object, name: str) -> tuple[str, ...]:
    """One text, a list of them, or a JSON list in a string; blank ones are left out."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = _json_list(value, name) if _JSON_LIST.match(value) else [value]
    items = _list(value, name)
    return tuple(
        text(item, name) for item in items if not (isinstance(item, str) and not item.strip())
    )


def _json_list(value: str, name: str) -> object:
    try:
        return parse(value)
    except RecordError as bad:
        raise RecordError(f"{name} starts like a JSON list but is {bad}") from None


def _list(value: object, name: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise RecordError(f"{name} must be a list, not {type(value).__name__}")
    return value
