"""What a run found, in constant memory: figures by system, the worst items, what was skipped.

A summary consumes batches. Summaries of parts can be merged and written as JSON, so parts can be
scored elsewhere, and a run that is continued knows what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Cuts
from causerie.engines.cache import add_cuts
from causerie.errors import CauserieError
from causerie.metrics.base import EMPTY, Column, Level, Score
from causerie.render.numbers import counted
from causerie.render.tables import Table, markdown_table
from causerie.report import Figures, Group, Page, Quote, quotable, write_report
from causerie.report.verdict import MAIN, Spread, verdict
from causerie.scoring.gates import Condition, Verdict
from causerie.scoring.plan import Plan
from causerie.scoring.scorer import Batch
from causerie.scoring.store import Item

MAX_SYSTEMS = 12
"""Systems with figures of their own: those whose names come first in the alphabet, so that which
they are does not depend on the order of the input; all others share theirs."""
MANY_SYSTEMS = 1000
"""Systems whose conversations are told apart."""
SPEAKERS = 8


@dataclass
class Summary:
    """The whole run so far."""

    scored: Mapping[str, Column]
    """What is scored, by column."""
    level: Level = "turn"
    systems: dict[str, dict[str, Figures]] = field(default_factory=dict)
    """By name, empty where a dialogue names no system; then by column."""
    others: dict[str, Figures] = field(default_factory=dict)
    """By column, of all systems that are not among `systems`."""
    talks: dict[str, Spread] = field(default_factory=dict)
    """By system, the mean quality of its conversations; "" are those without a name."""
    records: int = 0
    """Records read, good and bad."""
    rejected: int = 0
    items: int = 0
    """Rows written."""
    dialogues: int = 0
    """Conversations with a row."""
    nothing: int = 0
    """Records without a response to score: of one turn, or without the wanted speaker."""
    tool_messages: int = 0
    """Messages to and from tools, which are no turns and were left out."""
    speakers: list[str] = field(default_factory=list)
    """The first few seen, for a message when none of them was wanted."""
    cuts: Cuts = field(default_factory=dict)
    """Engine to how many inputs were cut to the model's window, and how many it saw."""

    @classmethod
    def of(cls, plan: Plan) -> Summary:
        """The summary of nothing yet."""
        return cls(plan.columns, plan.level)

    @property
    def columns(self) -> dict[str, Figures]:
        """The figures of each column, all systems together."""
        first, *rest = [*self.systems.values(), *([self.others] if self.others else [])] or [{}]
        total = {name: first.get(name) or Figures(c) for name, c in self.scored.items()}
        for figures in rest:
            total = {name: total[name].merge(figures[name]) for name in total}
        return total

    @property
    def groups(self) -> list[Group]:
        """The systems by name, then all others."""
        alone = len(self.systems) == 1
        labels = {"": "all conversations" if alone else "unnamed system"}
        groups = [Group(labels.get(s, s), s, self.systems[s]) for s in sorted(self.systems)]
        return [*groups, *([Group("all other systems", None, self.others)] if self.others else [])]

    def see(self, record: Dialogue | Exchange) -> None:
        """Take note of a good record that has been read."""
        dialogue = record.dialogue if isinstance(record, Exchange) else record
        self.records += 1
        tools = dialogue.metadata.get("tool_messages", 0)
        self.tool_messages += tools if isinstance(tools, int) else 0
        self._meet(turn.speaker for turn in dialogue.turns[:SPEAKERS])

    def reject(self) -> None:
        """Take note of a bad record."""
        self.records += 1
        self.rejected += 1

    def add(self, batch: Batch, *, text: bool = True) -> None:
        """Take in the scores of a batch; without `text`, nothing that was said is kept."""
        items = batch.items
        dialogues = [item if isinstance(item, Dialogue) else item.dialogue for item in items]
        talks = _runs([id(dialogue) for dialogue in dialogues])
        places = [
            n for n, (start, end) in enumerate(talks, self.dialogues) for _ in range(start, end)
        ]
        if MAIN in batch.scores:
            for start, end in talks:
                self._add_talk(dialogues[start].system or "", batch.scores[MAIN][start:end])
        for start, end in _runs([dialogue.system or "" for dialogue in dialogues]):

            def quote(place: int, start: int = start) -> Quote:
                at = start + place
                return _quote(items[at], self.items + at, places[at], text)

            figures = self._figures_of(dialogues[start].system or "")
            for name, scores in batch.scores.items():
                figures[name].add(scores[start:end], quote)
        self.items += len(items)
        self.dialogues += len(talks)
        self.nothing += batch.without
        add_cuts(self.cuts, batch.all_cuts())

    def _add_talk(self, system: str, scores: Iterable[Score]) -> None:
        talk = Spread()
        for score in scores:
            if (quality := _main_value(score)) is not None:
                talk.add(quality)
        if talk.count and (system in self.talks or len(self.talks) < MANY_SYSTEMS):
            self.talks.setdefault(system, Spread()).add(talk.mean)

    def verdict(self) -> list[str]:
        """How good the systems are and which is better, in words."""
        return verdict(self.groups, self.talks)

    def merge(self, other: Summary) -> Summary:
        """The summary of both, of which the other comes after this one."""
        if (self.scored, self.level) != (other.scored, other.level):
            raise CauserieError("summaries of different columns cannot be merged")
        both = Summary(self.scored, self.level)
        for part, rows, dialogues in ((self, 0, 0), (other, self.items, self.dialogues)):
            for system, figures in part.systems.items():
                _merge_into(both._figures_of(system), figures, rows, dialogues)
            if part.others:
                _merge_into(both._others(), part.others, rows, dialogues)
            for count in ("records", "rejected", "items", "dialogues", "nothing", "tool_messages"):
                setattr(both, count, getattr(both, count) + getattr(part, count))
            both._meet(part.speakers)
            for system, spread in part.talks.items():
                both.talks[system] = both.talks.get(system, Spread()).merge(spread)
            add_cuts(both.cuts, part.cuts)
        return both

    def judge(self, condition: Condition) -> Verdict:
        """Whether a condition on means, percentiles or shares holds for this run."""
        if condition.column is None:
            share = self.rejected / self.records if self.records else None
            return condition.judge(share, "nothing was read")
        figures = self.columns[condition.column]
        values = {
            "mean": figures.mean,
            "percentile": figures.percentile,
            "unscored": figures.share_unscored,
        }
        why = "; ".join(figures.unscored) or "nothing was scored"
        return condition.judge(values[condition.quantity], why)

    def table(self) -> Table:
        """The figures of all systems together, for people."""
        rows = []
        for name, figures in self.columns.items():
            ends = (figures.low, figures.high) if figures.scored else (None, None)
            numbers = (figures.mean, figures.spread, *ends)
            arrow = {"higher": " ↑", "lower": " ↓", None: ""}[figures.column.better]
            missing = str(figures.unscored.total() or "")
            missing += f" ({figures.empty} empty)" if figures.empty else ""
            shown = ["" if n is None else f"{n:.4g}" for n in numbers]
            rows.append([f"{name}{arrow}", *shown, str(figures.scored), missing])
        headings = ("metric", "mean", "spread", "lowest", "highest", "scored", "unscored")
        return Table(headings, rows)

    def notes(self) -> list[str]:
        """What was left out, in sentences."""
        notes = []
        if self.rejected:
            notes.append(f"{self.rejected:,} of {counted(self.records, 'record')} skipped.")
        if self.nothing:
            notes.append(f"{counted(self.nothing, 'dialogue')} had no response to score.")
        if self.tool_messages:
            notes.append(f"{counted(self.tool_messages, 'tool message')} left out.")
        return notes

    def nothing_scored(self, speaker: str | None) -> str:
        """Why there is no row, in a sentence."""
        read = f"nothing to score: {self.records} records read, {self.rejected} of them bad"
        if speaker and self.speakers:
            said = ", ".join(self.speakers)
            return f"{read}; no response by {speaker}, the speakers are {said}"
        return read

    def write_page(
        self, path: Path, plan: Plan, conversations: Sequence[Mapping[str, Any]], title: str
    ) -> None:
        """Write these figures and some conversations as a page; `report.Shown` chooses them."""
        page = Page(
            title,
            plan.signature,
            self.scored,
            self.groups,
            self.columns,
            conversations,
            self.dialogues,
            self.items,
            plan.drawings,
            self.notes(),
            self.verdict(),
        )
        write_report(path, page)

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "scored": {name: asdict(column) for name, column in self.scored.items()},
            "systems": {s: _written(figures) for s, figures in self.systems.items()},
            "others": _written(self.others),
            "talks": {system: asdict(spread) for system, spread in self.talks.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        return cls(
            **{
                **content,
                "scored": {
                    name: Column(**{**column, "range": tuple(column["range"])})
                    for name, column in content["scored"].items()
                },
                "systems": {s: _restored(figures) for s, figures in content["systems"].items()},
                "others": _restored(content["others"]),
                "talks": {s: Spread.from_json(one) for s, one in content["talks"].items()},
                "cuts": {engine: (cut, seen) for engine, (cut, seen) in content["cuts"].items()},
            }
        )

    def __str__(self) -> str:
        return "\n".join([*self.verdict(), markdown_table(self.table()), *self.notes()])

    def _figures_of(self, system: str) -> dict[str, Figures]:
        """Those of a system: its own, or the ones that many share."""
        if system not in self.systems:
            last = max(self.systems) if len(self.systems) == MAX_SYSTEMS else None
            if last is not None and system > last:
                return self._others()
            if last is not None:
                _merge_into(self._others(), self.systems.pop(last))
            self.systems[system] = self._nothing()
        return self.systems[system]

    def _others(self) -> dict[str, Figures]:
        self.others = self.others or self._nothing()
        return self.others

    def _nothing(self) -> dict[str, Figures]:
        return {name: Figures(column) for name, column in self.scored.items()}

    def _meet(self, speakers: Iterable[str]) -> None:
        for speaker in speakers:
            if len(self.speakers) < SPEAKERS and speaker not in self.speakers:
                self.speakers.append(speaker)


def _runs(values: Sequence[object]) -> list[tuple[int, int]]:
    """Where runs of equal values begin and end."""
    starts = [n for n, value in enumerate(values) if not n or value != values[n - 1]]
    return list(pairwise([*starts, len(values)]))


def _main_value(score: Score) -> float | None:
    """How good a reply is; an empty one is the worst."""
    return 0.0 if score.reason == EMPTY.reason else score.value


def check_page(path: Path) -> None:
    """Refuse a page whose name would not open as one."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise CauserieError(f"{path} is to be a page: end its name with .html")


def _merge_into(
    figures: dict[str, Figures], more: Mapping[str, Figures], rows: int = 0, dialogues: int = 0
) -> None:
    for name, one in more.items():
        figures[name] = figures[name].merge(one, rows, dialogues)


def _quote(item: Item, row: int, dialogue: int, text: bool) -> Quote:
    if isinstance(item, Dialogue):
        said = quotable(item.turns[-1].text) if text else ""
        return Quote(row, dialogue, item.id, None, said)
    if not text:
        return Quote(row, dialogue, item.dialogue.id, item.turn)
    before = quotable(item.dialogue.turns[item.turn - 1].text) if item.turn else ""
    return Quote(row, dialogue, item.dialogue.id, item.turn, quotable(item.response.text), before)


def _written(figures: Mapping[str, Figures]) -> dict[str, Any]:
    return {name: one.to_json() for name, one in figures.items()}


def _restored(content: Mapping[str, Any]) -> dict[str, Figures]:
    return {name: Figures.from_json(one) for name, one in content.items()}
