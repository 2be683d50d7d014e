"""Chat messages, as OpenAI (`role`, `content`) and ShareGPT (`from`, `value`) write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from causerie.dialogue import Turn
from causerie.io.jsontext import encodable
from causerie.io.rejected import RecordError

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "gpt", "chatgpt", "bing", "bard", "bot", "model"})
_BACKGROUND = frozenset({"system", "developer"})
_TOOL = frozenset(
    {"tool", "function", "tool_call", "function_call", "tool_response", "function_response"}
    | {"observation", "ipython"}
)


class Chat(NamedTuple):
    turns: tuple[Turn, ...]
    background: tuple[str, ...]
    """System and developer messages: what the assistant was told, not what was said."""
    tool_messages: int
    """Messages to and from tools; they are left out."""


def read_messages(messages: Sequence[object]) -> Chat:
    """Split messages into what was said, what was known, and what went to tools."""
    turns: list[Turn] = []
    background: list[str] = []
    tool_messages = 0
    for index, message in enumerate(messages):
        try:
            role, content, calls_tool = _parts(message)
            if role in _TOOL or (role in _ASSISTANT and calls_tool and not content):
                tool_messages += 1
            elif role in _BACKGROUND:
                background += [content] if content else []
            elif not content:
                raise RecordError("has no text")
            elif role in _USER:
                turns.append(Turn("user", content, "user"))
            elif role in _ASSISTANT:
                turns.append(Turn("assistant", content, "system"))
            else:
                raise RecordError(f"role {role!r} is not user, assistant, system or tool")
        except RecordError as bad:
            raise RecordError(f"message {index}: {bad}") from None
    return Chat(tuple(turns), tuple(background), tool_messages)


def _parts(message: object) -> tuple[str, str, bool]:
    """Role, text ("" if there is none), and whether the message calls a tool."""
    if not isinstance(message, dict):
        raise RecordError(f"must be an object, not {type(message).__name__}")
    sharegpt = message.get("from") is not None
    role = message.get("from" if sharegpt else "role")
    if not isinstance(role, str):
        raise RecordError(
            "role is missing"
            if role is None
            else f"role must be a string, not {type(role).__name__}"
        )
    role = role.strip().lower()
    calls_tool = bool(message.get("tool_calls") or message.get("function_call"))
    if role in _TOOL:
        return role, "", True  # never shown, so whatever it holds is fine
    name = "value" if sharegpt else "content"
    content = message.get(name)
    if content is None and not calls_tool:
        raise RecordError(f"{name} is missing")
    return role, _content(content, name), calls_tool


def _content(content: object, name: str) -> str:
    if content is None:
        return ""
    if isinstance(content, list):
        content = "\n".join(_part(part, name) for part in content if _is_text(part))
    if not isinstance(content, str):
        raise RecordError(f"{name} must be a string, not {type(content).__name__}")
    if "\0" in content:
        raise RecordError(f"{name} has a NUL character")
    return encodable(content.strip(), name)


def _is_text(part: object) -> bool:
    if not isinstance(part, dict):
        raise RecordError(f"a part of the content must be an object, not {type(part).__name__}")
    return part.get("type") == "text"


def _part(part: Mapping[str, object], name: str) -> str:
    said = part.get("text")
    if not isinstance(said, str):
        raise RecordError(f"text in {name} must be a string, not {type(said).__name__}")
    return said
