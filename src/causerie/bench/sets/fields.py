"""Parsing the fields of a judged record: turns, references, ratings and votes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from causerie.dialogue import Chat, Dialogue, Exchange, Turn, checked, read_chat
from causerie.errors import RecordError
from causerie.io.records import any_turn, text
from causerie.stats import VOTES

Fields: TypeAlias = Mapping[str, object]
Ratings: TypeAlias = Mapping[str, tuple[float | None, ...]]

LARGEST_RATING = 1e6
"""Largest plausible rating; anything beyond it is an error in the file."""


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def exchange(
    name: str,
    context: tuple[Turn, ...],
    response: Turn,
    system: str | None = None,
    background: tuple[str, ...] = (),
) -> Exchange:
    turns = (*context, response)
    return Exchange(Dialogue(name, turns, system=system, background=background), len(context))


def read_context(value: object) -> Chat:
    """Return the turns of a context, and apart from them tool messages and background."""
    if not isinstance(value, list):
        raise RecordError("context must be a list of turns")
    return read_chat(value, _turn, "context turn")


def _turn(value: object, index: int | None = None) -> Turn | str | None:
    """Return a turn of a record, whose speaker may be unknown, or of a chat message."""
    if not isinstance(value, Mapping) or "text" not in value:
        return any_turn(value, index)
    speaker = optional_text(value, "speaker") or optional_text(value, "role")
    if speaker is None:
        return Turn("", checked(value["text"], "text"), message=index)
    return any_turn({"speaker": speaker, "text": value["text"]}, index)


def read_response(context: tuple[Turn, ...], value: object, name: str) -> Turn:
    """Read a response, an object or a bare string, by default spoken by the listener."""
    try:
        turn = _turn({"text": value} if isinstance(value, str) else value)
    except RecordError as bad:
        raise RecordError(f"{name}: {bad}") from None
    if not isinstance(turn, Turn):
        raise RecordError(f"{name} must be a turn, not a tool or system message")
    if turn.speaker or not any(t.speaker for t in context):
        return turn
    last = context[-1].speaker
    listener = next((t for t in reversed(context) if t.speaker != last), None)
    if listener is not None:
        return replace(turn, speaker=listener.speaker, role=listener.role)
    return replace(turn, speaker="A" if last == "B" else "B")


def with_reference(exchange: Exchange, reference: str) -> Exchange:
    response = replace(exchange.response, references=(reference,))
    return replace(
        exchange, dialogue=replace(exchange.dialogue, turns=(*exchange.context, response))
    )


def read_references(fields: Fields) -> tuple[str, ...]:
    given = fields.get("references") or fields.get("reference")
    values = given if isinstance(given, list) else [given]
    found = (optional_text({"reference": value}, "reference") for value in values)
    return tuple(dict.fromkeys(reference for reference in found if reference))


def optional_text(fields: Fields, name: str) -> str | None:
    """Return a text that may be missing or blank, or an id that may be a number."""
    value = fields.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text(value, name)


def read_ratings(value: object) -> tuple[Ratings, list[str]]:
    """Return the usable ratings, and what is wrong with the others."""
    if not isinstance(value, Mapping) or not value:
        return {}, ["has no ratings"]
    ratings, faults = {}, []
    for dimension, given in value.items():
        row = given if isinstance(given, list) else [given]
        if not row:
            faults.append(f"{dimension!r} has no rating")
            continue
        ratings[str(dimension)] = tuple(read_rating(rating) for rating in row)
        if odd := [r for r in row if r is not None and read_rating(r) is None]:
            faults.append(
                f"{dimension!r} has {len(odd)} rating(s) that are no numbers, or absurd ones"
            )
    return ratings, faults


def read_rating(value: object) -> float | None:
    """Return a rating given as a number or as text; None for anything else ("N/A")."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= LARGEST_RATING else None


def read_judgements(value: object) -> tuple[tuple[Mapping[str, str], ...], list[str]]:
    if not isinstance(value, list) or not value:
        return (), ["has no judgements"]
    votes, faults = [], []
    known = {vote.casefold(): vote for vote in VOTES}
    for annotator, given in enumerate(value):
        row = given if isinstance(given, Mapping) else {}
        usable = {
            str(dimension): known[vote.casefold()]
            for dimension, vote in row.items()
            if isinstance(vote, str) and vote.casefold() in known
        }
        # A missing vote is null; anything else unusable is an error.
        odd = sum(vote is not None for vote in row.values()) - len(usable)
        if odd or not isinstance(given, Mapping):
            faults.append(f"annotator {annotator} has {odd or 'only'} unknown judgement(s)")
        votes.append(usable)
    return tuple(votes), faults
