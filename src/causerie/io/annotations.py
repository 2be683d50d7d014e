"""What people said about single turns: causes of a response, labels of an utterance.

Causal annotations say which turns of a context are causes of the response. Two shapes are read.
causerie's own has `cause_turns`, 0-based, and the `cause_spans` they came from, or `cause_places`
with the characters of every one; the published CGDIALOG+ has the spans alone, as `entities`, and
turns as "Speaker: text".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from causerie.dialogue import Exchange, Turn
from causerie.errors import RecordError
from causerie.io.places import Place, places_in, places_of, whole_turn
from causerie.io.readers import PREFIX
from causerie.io.records import text, to_record

OPENING = 3
"""Turns by which a conversation is known."""


@dataclass(frozen=True)
class Annotation:
    """An exchange and the causes of its response."""

    exchange: Exchange
    causes: frozenset[int]
    """0-based indices of turns of the context."""
    unmatched: tuple[str, ...] = ()
    """Spans that are in no turn."""
    places: tuple[Place, ...] = ()
    """Of the causes, in order; a cause of which no more is known is a whole turn."""

    @property
    def conversation(self) -> tuple[str, ...]:
        """Equal for exchanges of one conversation: its first turns.

        The first response of all has fewer before it and stands for itself.
        """
        return opening((*self.exchange.context, self.exchange.response))


def opening(turns: Sequence[Turn]) -> tuple[str, ...]:
    """The texts by which a conversation is known, in small letters."""
    return tuple(_plain(turn.text) for turn in turns[:OPENING])


def to_annotation(
    fields: Mapping[str, object], default_id: str, source: str | None = None
) -> Annotation:
    """Read the fields of either shape; raises `RecordError`."""
    exchange = _exchange(fields, default_id, source)
    context = exchange.context
    if fields.get("cause_places") is not None:
        places = _places(fields["cause_places"], context)
        return Annotation(exchange, frozenset(place.turn for place in places), (), places)
    spans = _spans(fields)
    found = [places_of(span, context) for span in spans]
    unmatched = tuple(span for span, places in zip(spans, found, strict=True) if not places)
    if fields.get("cause_turns") is None:
        places = tuple(sorted({place for one in found for place in one}))
        return Annotation(exchange, frozenset(p.turn for p in places), unmatched, places)
    causes = _turns(fields["cause_turns"], exchange.turn)
    inside = {place for span in spans for place in places_in(span, context, causes)}
    rest = {whole_turn(context, turn) for turn in causes - {place.turn for place in inside}}
    return Annotation(exchange, causes, unmatched, tuple(sorted(inside | rest)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _exchange(fields: Mapping[str, object], default_id: str, source: str | None) -> Exchange:
    history, response = fields.get("history"), fields.get("response")
    if not isinstance(history, list):
        raise RecordError("history is missing" if history is None else "history must be a list")
    # the published files end every history with an empty string
    context = [_turn(item) for item in history if not (isinstance(item, str) and not item.strip())]
    if not context:
        raise RecordError("history has no turns")
    if response is None:
        raise RecordError("response is missing")
    record = {"id": fields.get("id"), "context": context, "response": _turn(response)}
    exchange = to_record(record, default_id, source)
    assert isinstance(exchange, Exchange)
    for index, turn in enumerate(exchange.context):
        text(turn.text, f"context turn {index}: text")
    text(exchange.response.text, "response: text")  # silence has no causes that could be marked
    return exchange


def _turn(item: object) -> object:
    """A turn as `context` has them: "Speaker: text" taken apart, no speaker left out."""
    if isinstance(item, str) and (prefix := PREFIX.match(item)):
        return {"speaker": prefix["speaker"], "text": item[prefix.end() :]}
    if isinstance(item, dict) and not item.get("speaker"):
        return item.get("text")
    return item


def _spans(fields: Mapping[str, object]) -> list[str]:
    for name in ("cause_spans", "entities"):
        spans = fields.get(name)
        if spans is None:
            continue
        if not (isinstance(spans, list) and all(isinstance(span, str) for span in spans)):
            raise RecordError(f"{name} must be a list of strings")
        return spans
    if fields.get("cause_turns") is None:
        raise RecordError('has no "cause_turns", "cause_spans" or "entities"')
    return []


def _turns(value: object, count: int) -> frozenset[int]:
    if not isinstance(value, list):
        raise RecordError("cause_turns must be a list")
    for turn in value:
        if type(turn) is not int or not 0 <= turn < count:
            raise RecordError(f"cause_turns: {turn!r} is no turn of a history of {count}")
    return frozenset(value)


def _places(value: object, context: Sequence[Turn]) -> tuple[Place, ...]:
    if not isinstance(value, list):
        raise RecordError("cause_places must be a list")
    return tuple(sorted({place_of(item, context, "cause_places") for item in value}))


def place_of(item: object, turns: Sequence[Turn], name: str) -> Place:
    """Read `turn`, `start` and `stop`, which must lie in the text; raises `RecordError`."""
    fields = item if isinstance(item, Mapping) else {}
    numbers = [fields.get(key) for key in ("turn", "start", "stop")]
    turn, start, stop = (number if type(number) is int else -1 for number in numbers)
    if not (0 <= turn < len(turns) and 0 <= start < stop <= len(turns[turn].text)):
        raise RecordError(f"{name}: {item!r} is no place in {len(turns)} turns")
    return Place(turn, start, stop)


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
