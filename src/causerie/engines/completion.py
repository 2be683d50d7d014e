"""Chat completions: what an endpoint sends, of which nothing is taken for granted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from causerie.engines.budget import Tokens
from causerie.progress import printable

_MOST = 10**9
"""Tokens that a request is believed to cost."""


@dataclass(frozen=True)
class Choice:
    """One answer of a model."""

    text: str
    tokens: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The tokens it is made of, each with the log-probabilities of what it might have been."""


@dataclass(frozen=True)
class Answer:
    """What came of one question: choices, or the reason why there are none."""

    choices: tuple[Choice, ...] = ()
    refusal: str | None = None


def parsed(text: str) -> tuple[Answer, Tokens | None] | None:
    """A chat completion with the tokens that it is charged for, as far as it says; else None."""
    try:
        content = json.loads(text)
        choices = tuple(_choice(one) for one in content["choices"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return (Answer(choices), _charged(content.get("usage"))) if choices else None


def _charged(usage: Any) -> Tokens | None:
    """The tokens that an answer is charged for; None where that is not said."""
    if not isinstance(usage, dict):
        return None
    sent, answered = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(sent) is type(answered) is int and min(sent, answered) >= 0:
        return min(sent, _MOST), min(answered, _MOST)
    return None


def _choice(one: Any) -> Choice:
    text = one["message"].get("content")
    given = one.get("logprobs")
    tokens = given.get("content") if isinstance(given, dict) else None
    try:
        read = tuple(
            (str(t["token"]), _chances((a["token"], a["logprob"]) for a in t["top_logprobs"]))
            for t in tokens or ()
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        read = ()
    return Choice(text if isinstance(text, str) else "", read)


def written(answer: Answer) -> str:
    return json.dumps([[one.text, one.tokens] for one in answer.choices])


def kept(text: str) -> Answer | None:
    """An answer that was kept; None if it is damaged."""
    try:
        choices = tuple(
            Choice(str(own), tuple((str(t), _chances(a.items())) for t, a in tokens))
            for own, tokens in json.loads(text)
        )
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError):
        return None
    return Answer(choices) if choices else None


def _chances(pairs: Iterable[tuple[Any, Any]]) -> dict[str, float]:
    return {str(token): float(logprob) for token, logprob in pairs}


def said(text: str) -> str:
    """What an endpoint says is wrong, as one short line."""
    try:
        found = json.loads(text)
        error = found.get("error", found)
        message = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        message = text
    return printable(" ".join(str(message).split()))[:200]
