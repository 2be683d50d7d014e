"""Utterances with labels, to train a classifier of utterances on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from causerie.io.records import text
from causerie.io.rejected import RecordError


@dataclass(frozen=True, slots=True)
class Labelled:
    """An utterance, the turn before it, and what it is."""

    text: str
    before: str | None
    labels: frozenset[str]
    judged: frozenset[str]
    """Labels that it has or has not; whether it has others is not known."""


def to_labelled(fields: Mapping[str, object], known: Collection[str]) -> Labelled:
    """Read `text`, `labels`, and `context`: the turns before, of which the last counts.

    Without `judged` everything is; with it no label at all may be true.
    """
    judged = _names(fields, "judged", known) if "judged" in fields else frozenset(known)
    labels = _names(fields, "labels", known, least=0 if "judged" in fields else 1)
    if unjudged := sorted(labels - judged):
        raise RecordError(f"label {unjudged[0]!r} is not among those judged")
    context = fields.get("context")
    turns = [context] if isinstance(context, str) else context or []
    if not isinstance(turns, list):
        raise RecordError(f"context must be a list, not {type(context).__name__}")
    before = text(turns[-1], "context") if turns else None
    return Labelled(text(fields.get("text"), "text"), before, labels, judged)


def _names(
    fields: Mapping[str, object], key: str, known: Collection[str], least: int = 1
) -> frozenset[str]:
    values = fields.get(key)
    if not isinstance(values, list) or len(values) < least:
        raise RecordError(f"{key} must be a list{' with something in it' if least else ''}")
    names = frozenset(text(value, "label") for value in values)
    if unknown := sorted(names - set(known)):
        raise RecordError(f"unknown label {unknown[0]!r}: use {', '.join(known)}")
    return names
