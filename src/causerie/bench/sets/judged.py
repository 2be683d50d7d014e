"""Judged sets: exchanges, pairs of responses or dialogues with human judgements.

One JSON object per line, `.jsonl` or `.jsonl.gz` (docs/judged-sets.md has every field):

    {"id", "level": "turn", "context": [{"speaker", "text"}], "response": {"speaker", "text"},
     "reference" | "references", "fact", "system", "ratings": {dimension: [one per annotator]}}
    {"id", "level": "dialog", "context": [...], "system", "ratings": {...}}
    {"id", "level": "pair", "context": [...], "a": {"system", "text"}, "b": {...},
     "judgements": [{dimension: "A" | "B" | "both good" | "both bad"}, one per annotator]}
    {"id", "context": [...], "answer", "adversarial", "adversarial_context"}    (attacks)

Reading never stops at a bad record: unusable parts are left out and listed in `problems`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from causerie.bench.sets.catalogue import SetEntry, entry_for
from causerie.bench.sets.fields import (
    Fields,
    Ratings,
    exchange,
    optional_text,
    read_context,
    read_judgements,
    read_ratings,
    read_references,
    read_response,
    with_reference,
)
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.errors import CauserieError, RecordError
from causerie.io.jsontext import parse_object
from causerie.io.records import background_of, text
from causerie.io.sources import READ_ERRORS, open_source
from causerie.progress import Progress, Watch

JudgedLevel: TypeAlias = Literal["turn", "dialogue", "pair"]

_LEVELS: Mapping[object, JudgedLevel] = {
    "turn": "turn",
    "dialog": "dialogue",
    "dialogue": "dialogue",
    "pair": "pair",
}


@dataclass(frozen=True)
class JudgedItem:
    """One response (an exchange) or one dialogue with its ratings.

    References belong to the exchange's response turn; what the speakers knew (a persona, a fact)
    is the dialogue's background.
    """

    id: str
    item: Exchange | Dialogue
    ratings: Ratings
    """One rating per annotator, by dimension; None where an annotator gave none."""
    system: str | None
    human: bool
    """Whether a person wrote the response."""
    cluster: str
    """Shared by items with the same context or dialogue, which are not independent."""

    def mean(self, dimension: str) -> float | None:
        """Return the mean of the given ratings, or None if there are none."""
        given = [r for r in self.ratings.get(dimension, ()) if r is not None]
        return math.fsum(given) / len(given) if given else None


@dataclass(frozen=True)
class JudgedPair:
    """Two responses to the same context, and which one each annotator preferred."""

    id: str
    a: Exchange
    b: Exchange
    systems: tuple[str, str]
    humans: tuple[bool, bool]
    judgements: tuple[Mapping[str, str], ...]
    """Per annotator, the vote by dimension: "A", "B", "both good" or "both bad"."""
    cluster: str


@dataclass(frozen=True)
class JudgedSet:
    """A judged set as read from its file: `items`, or `pairs` if the level is "pair"."""

    name: str
    level: JudgedLevel
    items: tuple[JudgedItem, ...]
    pairs: tuple[JudgedPair, ...]
    dimensions: tuple[str, ...]
    problems: tuple[str, ...]
    """What was left out and why, with line numbers."""
    sha256: str
    """Hash of the uncompressed content."""
    rejected: tuple[str, ...] = ()
    """The problems that cost a whole record, with the file name."""

    def __len__(self) -> int:
        return len(self.items) or len(self.pairs)


@dataclass(frozen=True)
class AttackItem:
    """A true answer and its corrupted version."""

    id: str
    true: Exchange
    corrupted: Exchange
    cluster: str


@dataclass(frozen=True)
class AttackSet:
    """One attack on one corpus."""

    name: str
    items: tuple[AttackItem, ...]
    control: bool
    """Whether the change is harmless, so that a metric should not punish it."""
    problems: tuple[str, ...]
    sha256: str
    rejected: tuple[str, ...] = ()


def read_judged(path: str | Path) -> JudgedSet:
    """Read a judged set; the file name identifies the set in the catalogue."""
    entry = entry_for(set_name(path))
    reading = _Reading(path)
    records = list(reading.records())
    level = next((found for _, fields in records if (found := _level(fields))), None)
    same_level = []
    for line, fields in records:
        if level is not None and _level(fields) == level:
            same_level.append((line, fields))
        else:
            reading.reject(line, f"level is {fields.get('level')!r}, not {level or 'turn'!r}")
    items: tuple[JudgedItem, ...] = ()
    pairs: tuple[JudgedPair, ...] = ()
    if level == "pair":
        pairs = tuple(_pairs(same_level, entry, reading))
        dimensions = _in_order(d for pair in pairs for votes in pair.judgements for d in votes)
    else:
        items = tuple(_items(same_level, entry, reading))
        dimensions = _in_order(d for item in items for d in item.ratings)
        reading.problems += _missing(dimensions, items)
    if level is None or not (items or pairs):
        raise CauserieError(
            f"{path} has no judged record ({reading.first_problem()}): "
            "see docs/judged-sets.md for the format"
        )
    told = (tuple(reading.problems), reading.hash(), tuple(reading.rejected))
    return JudgedSet(entry.name, level, items, pairs, dimensions, *told)


def read_attack(path: str | Path) -> AttackSet:
    """Read an adversarial set: true answers, each with its corrupted twin."""
    entry = entry_for(set_name(path))
    reading = _Reading(path)
    items = []
    clusters = _Clusters(entry)
    for line, fields in reading.records():
        try:
            context, known = reading.context(line, fields)
            other = context
            if fields.get("adversarial_context") is not None:
                other, _ = reading.context(line, fields, "adversarial_context")
            name = _name(fields, line)
            cluster = clusters.of(name, fields, context)
            answer = read_response(context, fields.get("answer"), "answer")
            attack = read_response(other, fields.get("adversarial"), "adversarial")
            true = exchange(name, context, answer, background=known)
            false = exchange(name, other, attack, background=known)
        except RecordError as bad:
            reading.reject(line, str(bad))
            continue
        if true.dialogue.turns == false.dialogue.turns:
            reading.problem(line, "the attack changed nothing: left out")
            continue
        items.append(AttackItem(name, true, false, cluster))
    if not items:
        raise CauserieError(
            f"{path} has no attack record ({reading.first_problem()}): "
            "see docs/judged-sets.md for the format"
        )
    told = (tuple(reading.problems), reading.hash(), tuple(reading.rejected))
    return AttackSet(entry.name, tuple(items), entry.control, *told)


def tell_rejected(found: JudgedSet | AttackSet, watch: Watch) -> None:
    """Report the records that could not be read, as readers of other files do."""
    for record in found.rejected:
        watch(Progress("reading", note=f"skipped {record}"))


def set_name(path: str | Path) -> str:
    """Return the name of the set in a file: `fed_turn` for `fed_turn.jsonl.gz`."""
    return re.sub(r"\.jsonl(\.gz)?$", "", Path(path).name)


class _Reading:
    """One pass over a file: its records, its hash, and its problems."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.problems: list[str] = []
        self.rejected: list[str] = []
        self._digest = sha256()

    def records(self) -> Iterator[tuple[int, Fields]]:
        try:
            with open_source(self.path) as source:
                for line, data in source.lines():
                    if isinstance(data, RecordError):
                        self.reject(line, str(data))
                        continue
                    self._digest.update(data)
                    if data.isspace():
                        continue
                    fields = parse_object(data)
                    if isinstance(fields, RecordError):
                        self.reject(line, str(fields))
                    else:
                        yield line, fields
        except READ_ERRORS as error:
            raise CauserieError(f"{self.path} cannot be read ({error}): check the file") from error

    def problem(self, line: int, reason: str) -> None:
        self.problems.append(f"line {line}: {reason}")

    def reject(self, line: int, reason: str) -> None:
        """Leave out the record that begins on this line."""
        self.problem(line, reason)
        self.rejected.append(f"{self.path}:{line}: {reason}")

    def first_problem(self) -> str:
        return self.problems[0] if self.problems else "it is empty"

    def hash(self) -> str:
        return self._digest.hexdigest()

    def context(
        self, line: int, fields: Fields, name: str = "context"
    ) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
        """Return the turns of a context, and what its speakers knew beforehand.

        Turns without text and tool messages are left out and reported as problems.
        """
        chat = read_context(fields.get(name))
        if blank := sum(not turn.text for turn in chat.turns):
            self.problem(line, f"{blank} of the context's turns are empty: left out")
        if chat.tool_messages:
            self.problem(line, f"{chat.tool_messages} messages of tools: left out")
        turns = tuple(turn for turn in chat.turns if turn.text)
        return turns, background_of(fields) + chat.background


def _items(
    records: Iterable[tuple[int, Fields]], entry: SetEntry, reading: _Reading
) -> Iterator[JudgedItem]:
    clusters = _Clusters(entry)
    for line, fields in records:
        try:
            name, (context, known) = _name(fields, line), reading.context(line, fields)
            cluster = clusters.of(name, fields, context)
            system = optional_text(fields, "system")
            item: Exchange | Dialogue
            if _level(fields) == "turn":
                response = read_response(context, fields.get("response"), "response")
                response = replace(response, references=read_references(fields))
                item = exchange(name, context, response, system, known)
                if not response.text:
                    reading.problem(line, "the response is empty: kept, as people judged it")
            elif not context:
                raise RecordError("the dialogue has no turns")
            else:
                item = Dialogue(name, context, system=system, background=known)
        except RecordError as bad:
            reading.reject(line, str(bad))
            continue
        ratings, faults = read_ratings(fields.get("ratings"))
        for fault in faults:
            reading.problem(line, fault)
        yield JudgedItem(name, item, ratings, system, entry.is_human(system), cluster)


def _pairs(
    records: list[tuple[int, Fields]], entry: SetEntry, reading: _Reading
) -> Iterator[JudgedPair]:
    clusters = _Clusters(entry)
    read: list[tuple[JudgedPair, bool]] = []
    human_text: dict[str, str] = {}
    for line, fields in records:
        try:
            name, (context, known) = _name(fields, line), reading.context(line, fields)
            cluster = clusters.of(name, fields, context)
            sides = [_side(fields, side, name, context, known) for side in ("a", "b")]
        except RecordError as bad:
            reading.reject(line, str(bad))
            continue
        votes, faults = read_judgements(fields.get("judgements"))
        for fault in faults:
            reading.problem(line, fault)
        (a, first), (b, second) = sides
        humans = (entry.is_human(first), entry.is_human(second))
        for side, system, human in ((a, first, humans[0]), (b, second, humans[1])):
            if not side.response.text:
                reading.problem(line, f"the response of {system} is empty: kept, as judged")
            elif human:
                human_text.setdefault(cluster, side.response.text)
        pair = JudgedPair(name, a, b, (first, second), humans, votes, cluster)
        read.append((pair, bool(read_references(fields))))
    # Published pairs have no reference of their own: use the human response to the same context.
    for pair, has_reference in read:
        reference = human_text.get(pair.cluster)
        if reference is None or has_reference:
            yield pair
        else:
            a, b = (with_reference(side, reference) for side in (pair.a, pair.b))
            yield replace(pair, a=a, b=b)


def _side(
    fields: Fields, side: str, name: str, context: tuple[Turn, ...], known: tuple[str, ...]
) -> tuple[Exchange, str]:
    value = fields.get(side)
    if not isinstance(value, Mapping):
        raise RecordError(f'"{side}" must be an object with "system" and "text"')
    system = text(value.get("system"), f"{side}.system")
    response = replace(read_response(context, value, side), references=read_references(fields))
    return exchange(f"{name}#{side}", context, response, system, known), system


class _Clusters:
    """Assigns items to clusters, named after the first item with the same context."""

    def __init__(self, entry: SetEntry) -> None:
        self._pattern = re.compile(entry.dialogue_id) if entry.dialogue_id else None
        self._first: dict[tuple[str, ...], str] = {}

    def of(self, name: str, fields: Fields, context: tuple[Turn, ...]) -> str:
        if named := optional_text(fields, "dialog_id"):
            return named
        if self._pattern and (match := self._pattern.match(name)):
            return match.group(1)
        return self._first.setdefault(tuple(turn.text for turn in context), name)


def _level(fields: Fields) -> JudgedLevel | None:
    level = fields.get("level", "turn")
    return _LEVELS.get(level) if isinstance(level, str) else None


def _name(fields: Fields, line: int) -> str:
    return optional_text(fields, "id") or f"line-{line}"


def _missing(dimensions: tuple[str, ...], items: tuple[JudgedItem, ...]) -> list[str]:
    without = {d: sum(item.mean(d) is None for item in items) for d in dimensions}
    return [
        f"{count} of {len(items)} items have no rating of {dimension!r}"
        for dimension, count in without.items()
        if count
    ]


Kept = TypeVar("Kept")


def _in_order(values: Iterable[Kept]) -> tuple[Kept, ...]:
    return tuple(dict.fromkeys(values))
