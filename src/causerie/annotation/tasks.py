"""What annotators are asked, and the items they are asked about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from causerie.dialogue import Dialogue, Exchange, Turn, exchanges_of
from causerie.errors import CauserieError
from causerie.io.places import Place

Kind: TypeAlias = Literal["causes", "labels", "replies", "pairs", "dialogues"]
KINDS: tuple[Kind, ...] = get_args(Kind)

CAUSE = "cause"
"""The only label in a task of causal relations."""
MARKED = frozenset({"causes", "labels"})
"""Kinds of task in which text is marked; in the others questions are answered."""
_CLAUSE = re.compile(r"[^.!?;:,\n]*[.!?;:,\n]*\s*")


@dataclass(frozen=True)
class Question:
    """One question of a judgement; the answer is one of `VOTES`, or a whole number from 1."""

    name: str
    text: str
    scale: int = 5
    """Number of points on the scale; unused where responses are compared."""
    ends: tuple[str, str] = ("not at all", "very much")
    """What the lowest and the highest point mean."""


PAPER = (
    Question("empathy", "Which response shows more understanding of what the other one feels?"),
    Question(
        "specificity", "Which response is made for this conversation, and would fit few more?"
    ),
    Question("relevance", "Which response answers better what was said before?"),
    Question("consistency", "Which response agrees better with what was said before?"),
    Question("overall", "Which response is better, all in all?"),
)
"""The questions of CausalScore's annotators about two responses."""

_RATED = (
    Question("relevance", "Does the reply answer what was said before?"),
    Question("specificity", "Is the reply made for this conversation, rather than for any?"),
    Question("overall", "How good is the reply, all in all?", ends=("very bad", "very good")),
)
_WHOLE = (
    Question("coherence", "Does the conversation hang together from turn to turn?"),
    Question(
        "overall", "How good is the conversation, all in all?", ends=("very bad", "very good")
    ),
)
QUESTIONS: Mapping[Kind, tuple[Question, ...]] = {
    "causes": (),
    "labels": (),
    "replies": _RATED,
    "pairs": PAPER,
    "dialogues": _WHOLE,
}


@dataclass(frozen=True)
class Task:
    """What is asked about every item of a project."""

    kind: Kind
    questions: tuple[Question, ...] = ()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str, names: Sequence[str] = (), scale: int = 5) -> Task:
        """Return the task of a kind; `names` are custom dimensions of a judgement, or labels."""
        if kind not in KINDS:
            raise CauserieError(f"{kind!r} is not a kind of task: use {', '.join(KINDS)}")
        if kind == "causes":
            if names:
                raise CauserieError("causal relations have no labels or dimensions: omit --names")
            return cls("causes", labels=(CAUSE,))
        if len(set(names)) < len(names) or not all(name.strip() for name in names):
            raise CauserieError("names of labels and dimensions must be different and not empty")
        if kind == "labels":
            if not names:
                raise CauserieError("name the labels, as in --names greeting,question")
            return cls("labels", labels=tuple(names))
        known = {question.name: question for question in QUESTIONS[kind]}
        asked = [known.get(name, Question(name, f"{name}?")) for name in names or known]
        return cls(kind, tuple(_scaled(question, scale) for question in asked))

    @property
    def is_marked(self) -> bool:
        return self.kind in MARKED

    def to_json(self) -> dict[str, Any]:
        questions = [{**vars(question), "ends": list(question.ends)} for question in self.questions]
        return {"kind": self.kind, "questions": questions, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Task:
        questions = [Question(**{**one, "ends": tuple(one["ends"])}) for one in fields["questions"]]
        return cls(fields["kind"], tuple(questions), tuple(fields["labels"]))


def _scaled(question: Question, scale: int) -> Question:
    if not 2 <= scale <= 11:
        raise CauserieError(f"a scale must have 2 to 11 points, not {scale}")
    return Question(question.name, question.text, scale, question.ends)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of two responses that are compared."""

    system: str
    text: str


@dataclass(frozen=True)
class Item:
    """What an annotator sees at once."""

    name: str
    """Unique in a project; it may reveal a system, so annotators of judgements never see it."""
    turns: tuple[Turn, ...]
    asked: tuple[int, ...] = ()
    """Indices of the turns asked about; for causal relations, the response at the end."""
    candidates: tuple[Candidate, ...] = ()
    """The two responses of a pair in stored order: A, then B."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the input record."""

    @property
    def context(self) -> tuple[Turn, ...]:
        """The turns before the response, in a task of causal relations."""
        return self.turns[:-1]

    def markable(self, task: Task) -> tuple[Turn, ...]:
        """Return the turns in which something may be marked."""
        return self.context if task.kind == "causes" else self.turns

    def to_json(self) -> dict[str, Any]:
        return {
            "turns": [_turn_fields(turn) for turn in self.turns],
            "asked": list(self.asked),
            "candidates": [{"system": c.system, "text": c.text} for c in self.candidates],
            "record": dict(self.record),
        }

    @classmethod
    def from_json(cls, name: str, fields: Mapping[str, Any]) -> Item:
        return cls(
            name,
            tuple(Turn(**{**turn, "references": tuple(turn.get("references", ()))})
                  for turn in fields["turns"]),
            tuple(fields["asked"]),
            tuple(Candidate(**candidate) for candidate in fields["candidates"]),
            fields["record"],
        )  # fmt: skip


def _turn_fields(turn: Turn) -> dict[str, Any]:
    fields: dict[str, Any] = {"speaker": turn.speaker, "text": turn.text}
    optional = {
        "role": turn.role,
        "time": turn.time,
        "references": list(turn.references),
        "features": dict(turn.features),
    }
    return {**fields, **{name: value for name, value in optional.items() if value}}


def clauses(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each clause, which ends after a punctuation mark.

    A clause without a letter or a digit is joined to the one before it.
    """
    found: list[tuple[int, int]] = []
    for match in _CLAUSE.finditer(text):
        start, stop = match.start(), match.start() + len(match.group().rstrip())
        if any(character.isalnum() for character in match.group()) or not found:
            if stop > start:
                found.append((start, stop))
        elif stop > start:
            found[-1] = (found[-1][0], stop)
    return [(start + len(text[start:stop]) - len(text[start:stop].lstrip()), stop)
            for start, stop in found]  # fmt: skip


def clauses_in(item: Item, task: Task, places: Iterable[Place]) -> frozenset[tuple[int, int]]:
    """Return the clauses, as turn and number, of which more than half is marked."""
    covered: dict[int, set[int]] = {}
    for place in places:
        covered.setdefault(place.turn, set()).update(range(place.start, place.stop))
    turns = item.markable(task)
    return frozenset(
        (turn, number)
        for turn, characters in covered.items()
        for number, (start, stop) in enumerate(clauses(turns[turn].text))
        if 2 * len(characters.intersection(range(start, stop))) > stop - start
    )


def items_of(
    kind: Kind, record: Dialogue | Exchange, speaker: str | None = None
) -> Iterator[Item]:  # fmt: skip
    """Yield the items of a record; for comparisons see `pairs_of`."""
    dialogue = record if isinstance(record, Dialogue) else record.dialogue
    extra = _extra(dialogue)
    if kind == "causes":
        for exchange in exchanges_of(record, speaker):
            turns = dialogue.turns[: exchange.turn + 1]
            if exchange.response.text and any(turn.text for turn in exchange.context):
                name = dialogue.id if exchange is record else f"{dialogue.id}#{exchange.turn}"
                yield Item(name, turns, (exchange.turn,), record=extra)
        return
    replies = tuple(exchange.turn for exchange in exchanges_of(record, speaker))
    asked = {"replies": replies, "labels": tuple(range(len(dialogue.turns)))}.get(kind, ())
    if asked or kind == "dialogues":
        yield Item(dialogue.id, dialogue.turns, asked, record=extra)


def pairs_of(records: Iterable[Exchange]) -> Iterator[Item]:
    """Yield comparisons of all responses to a context with those of every other system.

    Each response comes first about as often as second.
    """
    by_context: dict[tuple[tuple[str, str], ...], dict[str, Exchange]] = {}
    for exchange in records:
        known = tuple((turn.speaker, turn.text) for turn in exchange.context)
        system = exchange.dialogue.system or exchange.response.speaker
        if by_context.setdefault(known, {}).setdefault(system, exchange) is not exchange:
            raise CauserieError(
                f"{exchange.dialogue.id}: {system} has two responses to one context: "
                "give each response a different system"
            )
    if not any(len(answers) > 1 for answers in by_context.values()):
        raise CauserieError(
            "no two systems have a response to the same context: give files whose records have "
            "context, response and system, with the same contexts"
        )
    for answers in by_context.values():
        named = sorted(answers.items())
        for i, (one, first) in enumerate(named):
            for j, (other, second) in enumerate(named[i + 1 :], i + 1):
                sides = [
                    Candidate(one, first.response.text),
                    Candidate(other, second.response.text),
                ]
                if (i + j) % 2 == 0:  # half of a response's comparisons have an even sum
                    sides.reverse()
                name = f"{first.dialogue.id}: {sides[0].system} | {sides[1].system}"
                extra = _extra(first.dialogue)
                yield Item(name, first.context, (), tuple(sides), extra)


def _extra(dialogue: Dialogue) -> dict[str, Any]:
    found = {
        "system": dialogue.system,
        "background": list(dialogue.background),
        "metadata": dict(dialogue.metadata),
    }
    return {name: value for name, value in found.items() if value}
