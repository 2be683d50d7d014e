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


def to_labelled(fields: Mapping[str, object], known: Collection[str]) -> Labelled:
    """Read `text`, `labels`, and `context`: the turns before, of which the last counts."""
    labels = fields.get("labels")
    if not isinstance(labels, list) or not labels:
        raise RecordError("labels must be a list with something in it")
    names = frozenset(text(label, "label") for label in labels)
    if unknown := sorted(names - set(known)):
        raise RecordError(f"unknown label {unknown[0]!r}: use {', '.join(known)}")
    context = fields.get("context")
    turns = [context] if isinstance(context, str) else context or []
    if not isinstance(turns, list):
        raise RecordError(f"context must be a list, not {type(context).__name__}")
    before = text(turns[-1], "context") if turns else None
    return Labelled(text(fields.get("text"), "text"), before, names)
