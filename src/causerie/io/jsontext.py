"""JSON from strangers: parsed into what can be trusted, or a reason why not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from causerie.io.rejected import RecordError


def parse(text: str) -> object:
    """The value of a JSON text; raises `RecordError`."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(f"not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise RecordError("nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise RecordError(f"not valid JSON: {error}") from None
    return value


def parse_object(data: bytes) -> Mapping[str, object] | RecordError:
    """The fields of a JSON object, or why there are none."""
    try:
        value = parse(decode(data))
    except RecordError as bad:
        return bad
    if not isinstance(value, dict):
        return RecordError(f"a record must be a JSON object, not {type(value).__name__}")
    return value


def decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"not valid UTF-8 at byte {error.start + 1}") from None


def encodable(text: str, name: str) -> str:
    """The text itself, if it can be written as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RecordError(f"{name} has a lone surrogate") from None
    return text


def plain(value: object, name: str) -> object:
    """The value as plain JSON: a number that is not finite is null, other objects are text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return encodable(value, name)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {encodable(str(key), name): plain(item, name) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, name) for item in value]
    return encodable(str(value), name)
