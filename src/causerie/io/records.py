"""The fields of one record, whatever file they come from, become a dialogue or an exchange.

docs/formats.md says what every field means, and which names become which role.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TypeAlias, cast

from causerie.dialogue import (
    BACKGROUND,
    ROLES,
    TOOLS,
    Chat,
    Dialogue,
    Exchange,
    Turn,
    check_said,
    checked,
    read_chat,
    read_message,
)
from causerie.errors import RecordError
from causerie.io.jsontext import parse, plain

_Reader: TypeAlias = Callable[[object, "int | None"], "Turn | str | None"]

_KNOWN = ("persona", "personas", "personality", "fact", "facts")
"""Fields that belong to the background where they are text."""

_COMMON = frozenset(
    {"id", "rating", "date", "system", "background", "metadata", "reference", "references"}
)
FIELDS = _COMMON | {"context", "response", "turns", "messages", "conversations", "model", *_KNOWN}
"""Every name that means something at the top of a record; others go to the metadata."""

_JSON_LIST = re.compile(r'\s*\[\s*["{\]]')


def to_record(
    fields: Mapping[str, object], default_id: str, source: str | None = None
) -> Dialogue | Exchange:
    """Read the fields by the shape they have; raises `RecordError`.

    `turns` is causerie's own shape, `messages` OpenAI's, `conversations` ShareGPT's;
    `context` with `response` is one exchange, whose context is not scored. References beside
    any of them are for the last turn.
    """
    try:
        for name, reader in (
            ("turns", turn_of),
            ("messages", read_message),
            ("conversations", read_message),
        ):
            if fields.get(name) is not None:
                items = _list(fields[name], name)
                what = "turn" if name == "turns" else "message"
                chat = read_chat(items, partial(any_turn, otherwise=reader), what)
                return _dialogue(fields, chat, {name}, default_id, source)
        if fields.get("context") is not None or fields.get("response") is not None:
            chat = _exchange(fields)
            dialogue = _dialogue(fields, chat, {"context", "response"}, default_id, source)
            return Exchange(dialogue, len(dialogue.turns) - 1)
    except RecursionError:
        raise RecordError("nested too deeply") from None
    raise RecordError('has no "turns", "messages", "conversations", or "context" and "response"')


def to_fields(record: Dialogue | Exchange) -> dict[str, object]:
    """The fields of a record in causerie's own shape, from which `to_record` reads it again."""
    dialogue = record if isinstance(record, Dialogue) else record.dialogue
    others = {
        "rating": dialogue.rating,
        "date": dialogue.date,
        "system": dialogue.system,
        "background": list(dialogue.background),
        "metadata": dict(dialogue.metadata),
    }
    known = {name: value for name, value in others.items() if value not in (None, [], {})}
    if isinstance(record, Dialogue):
        return {"id": dialogue.id, "turns": [_turn_fields(t) for t in dialogue.turns], **known}
    return {
        "id": dialogue.id,
        "context": [_turn_fields(turn) for turn in record.context],
        "response": _turn_fields(record.response),
        **known,
    }


def _turn_fields(turn: Turn) -> dict[str, object]:
    fields = {
        "speaker": turn.speaker,
        "text": turn.text,
        "role": turn.role,
        "time": turn.time,
        "references": list(turn.references),
        "features": dict(turn.features),
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def turn_of(item: object, index: int | None = None) -> Turn | str | None:
    """Read one turn, as `turns` has them; raises `RecordError`.

    As with chat messages, a tool's is None and a developer's is text of the background. A turn
    without a speaker is by its role.
    """
    if not isinstance(item, (dict, Mapping)):
        raise RecordError(f"must be an object, not {type(item).__name__}")
    role = item.get("role")
    given = item.get("speaker")
    speaker = text(role if given is None else given, "speaker")
    name = role.strip().lower() if isinstance(role, str) else speaker.lower()
    if name in TOOLS:
        return None
    said = _said(item)
    if role is None and len(item) == 2:  # most turns have nothing else
        return Turn(speaker, said, message=index)
    if role is not None:
        if name in BACKGROUND and name not in ROLES:
            return said
        if name not in ROLES:
            raise RecordError('role must be "user" or "system"')
        role = ROLES[name]
    features = item.get("features")
    if features is not None and not isinstance(features, dict):
        raise RecordError(f"features must be an object, not {type(features).__name__}")
    return Turn(
        speaker,
        said,
        role,
        _label(item.get("time"), "time"),
        _references(item),
        {
            text(name, "name of a feature"): _number(value, f"feature {name!r}")
            for name, value in (features or {}).items()
            if value is not None
        },
        index,
    )


def any_turn(
    item: object, index: int | None = None, otherwise: _Reader = turn_of
) -> Turn | str | None:
    """Read a turn or a chat message by the shape it has; `otherwise` if it has neither."""
    if isinstance(item, (dict, Mapping)):
        if item.get("text") is not None:
            return turn_of(item, index)
        message = item.get("speaker") is None and item.get("role") is not None
        message = message and ("content" in item or "tool_calls" in item)
        if message or item.get("from") is not None:
            return read_message(item, index)
    return otherwise(item, index)


def background_of(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return what the speakers knew beforehand: `background`, a persona, facts line by line."""
    lines = [
        line.strip()
        for name in _KNOWN
        if _is_text(fields.get(name))
        for one in _texts(fields[name], name)
        for line in one.split("\n")
    ]
    return (*_texts(fields.get("background"), "background"), *(line for line in lines if line))


def text(value: object, name: str) -> str:
    """A string with something in it, without the white space around it."""
    value = checked(value, name)
    if not value:
        raise RecordError(f"{name} is empty")
    return value


def _dialogue(
    fields: Mapping[str, object],
    chat: Chat,
    used: set[str],
    default_id: str,
    source: str | None,
) -> Dialogue:
    check_said(chat.turns)
    given = fields.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise RecordError(f"metadata must be an object, not {type(given).__name__}")
    used = used | {name for name in _KNOWN if _is_text(fields.get(name))}
    others = {k: v for k, v in fields.items() if k not in _COMMON and k not in used}
    rating = fields.get("rating")
    *turns, last = chat.turns
    if references := _references(fields):
        last = replace(last, references=references + last.references)
    model = fields.get("model")
    return Dialogue(
        id=_label(fields.get("id"), "id") or default_id,
        turns=(*turns, last),
        rating=None if rating is None else _number(rating, "rating"),
        date=_label(fields.get("date"), "date"),
        system=_label(fields.get("system"), "system")
        or (_label(model, "model") if isinstance(model, str) else None)
        or chat.model,
        background=background_of(fields) + chat.background,
        metadata=cast(
            "dict[str, object]", plain({**(given or {}), **others, **chat.metadata}, "metadata")
        ),
        source=source,
    )


def _exchange(fields: Mapping[str, object]) -> Chat:
    """Read context and response; strings are spoken in turn by A and B, the response by B."""
    context, response = fields.get("context"), fields.get("response")
    if context is None or "response" not in fields:
        raise RecordError(f"{'context' if context is None else 'response'} is missing")
    if isinstance(context, str) and not _JSON_LIST.match(context):
        context = [line for line in context.split("\n") if line.strip()]
    items = _list(context, "context")
    chat = read_chat(items, partial(any_turn, otherwise=_context_turn), "context turn")
    named = [turn for turn in chat.turns if turn.speaker]
    try:
        if isinstance(response, Mapping):
            last = any_turn(response, len(items))
            if not isinstance(last, Turn):
                raise RecordError("is no turn, but a message of a tool or of the background")
            other = "B" if last.speaker == "A" else "A"
        else:
            # Where the context names its speakers, the response is by the last one to listen.
            other = named[-1].speaker if named else "A"
            said = _said({"text": response})
            last = Turn(_listener(named, other), said, message=len(items))
    except RecordError as bad:
        raise RecordError(f"response: {bad}") from None
    spoken = [
        turn
        if turn.speaker
        else replace(
            turn, speaker=other if (len(items) - (turn.message or 0)) % 2 else last.speaker
        )
        for turn in chat.turns
    ]
    return replace(chat, turns=(*spoken, last))


def _context_turn(item: object, index: int | None) -> Turn | str | None:
    """A turn of a context, where a bare string is one whose speaker is still to be told."""
    if isinstance(item, str):
        return Turn("", _said({"text": item}), message=index)
    return turn_of(item, index)


def _listener(named: Sequence[Turn], last: str) -> str:
    """Whoever of the named speakers spoke last before the last one; a new name if nobody did."""
    for turn in reversed(named):
        if turn.speaker != last:
            return turn.speaker
    if named and named[-1].role is not None:
        return "assistant" if named[-1].role == "user" else "user"
    return "A" if last == "B" else "B"


def _said(item: Mapping[str, object]) -> str:
    """The text of a turn, which may be empty: saying nothing is an answer, too."""
    said = item.get("text")
    return "" if said is None and "text" in item else checked(said, "text")


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


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
    if isinstance(value, str) and not _JSON_LIST.match(value):
        value = [value]
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
    """A list, or a string that holds one as JSON, as a cell of a table may."""
    if isinstance(value, str) and _JSON_LIST.match(value):
        value = _json_list(value, name)
    if not isinstance(value, (list, tuple)):
        raise RecordError(f"{name} must be a list, not {type(value).__name__}")
    return value
