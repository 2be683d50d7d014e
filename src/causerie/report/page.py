"""The report page: figures are drawn here, conversations in the browser by `page.js`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from causerie.dialogue import Dialogue
from causerie.io import write_whole
from causerie.metrics.base import Column, Score
from causerie.render.numbers import brief, counted, listed
from causerie.render.page import column_name, data_block, fill, outside, shown
from causerie.report.charts import histograms
from causerie.report.figures import Figures, Group, Quote

MAX_DIALOGUES = 500
MAX_CHARACTERS = 8_000_000
MAX_TEXT = 4_000
MAX_QUOTE = 600


@dataclass
class Shown:
    """Chooses the conversations that a page shows in full: the first ones, while there is room."""

    explain: bool = True
    """Whether explanations are shown."""
    dialogues: int = 0
    characters: int = 0

    def add(
        self, number: int, dialogue: Dialogue, scored: Mapping[int, Mapping[str, Score]]
    ) -> dict[str, Any] | None:
        """Return the conversation as the page's JSON, or None if there is no room for it.

        `number` is its index among all conversations; `scored` has the scores of its turns.
        """
        if self.dialogues >= MAX_DIALOGUES:
            return None
        talk = conversation(number, dialogue, scored, self.explain)
        return talk if self.take(talk) else None

    def take(self, talk: Mapping[str, Any]) -> bool:
        """Count a conversation and return True if there is room for it."""
        size = len(json.dumps(talk))
        if self.dialogues >= MAX_DIALOGUES or self.characters + size > MAX_CHARACTERS:
            return False
        self.dialogues += 1
        self.characters += size
        return True


@dataclass(frozen=True)
class Page:
    """Everything that a page shows; its size is bounded, however much was scored."""

    title: str
    signature: str
    columns: Mapping[str, Column]
    groups: Sequence[Group]
    figures: Mapping[str, Figures]
    """Figures of all groups together, by column."""
    conversations: Sequence[Mapping[str, Any]]
    """The conversations shown in full, each as made by `conversation`."""
    dialogues: int
    """Number of all scored conversations."""
    responses: int
    drawings: Mapping[str, str] = field(default_factory=dict)
    """How a column's explanations are drawn, "arcs" or "graph"; otherwise they are lists."""
    notes: Sequence[str] = ()
    """Remarks on what was skipped or had nothing to score."""
    verdict: Sequence[str] = ()
    """How good the systems are, in sentences."""


def write_report(path: Path, page: Page) -> None:
    """Write the page of `build_report` to a file, which appears complete or not at all."""
    write_whole(path, build_report(page))


def build_report(page: Page) -> str:
    """Return a self-contained HTML page about scored conversations, which needs no network.

    Figures and worst responses cover everything; conversations are shown in full up to a limit,
    which the page states.
    """
    return fill(
        "causerie.report",
        drawn=True,
        title=page.title,
        signature=escape(page.signature),
        verdict=_verdict(page),
        sentence=escape(shown(_sentence(page))),
        notes=escape(shown(" ".join(page.notes))),
        table=_table(page),
        charts="".join(_chart(page, index) for index in range(len(page.columns))),
        limits=escape(_limits(page)),
        data=_data(page),
    )


def conversation(
    number: int,
    dialogue: Dialogue,
    scored: Mapping[int, Mapping[str, Score]],
    explain: bool = True,
) -> dict[str, Any]:
    """Return a conversation as plain JSON: who said what, and the scores of its scored turns."""
    note = dialogue.metadata.get("note")
    turns: list[dict[str, Any]] = []
    for index, turn in enumerate(dialogue.turns):
        side = dialogue.role_of(turn)
        shown: dict[str, Any] = {"speaker": turn.speaker, "text": cut(turn.text), "side": side}
        if index in scored:
            scores = scored[index]
            shown["scores"] = [_number(score.value) for score in scores.values()]
            shown["percentiles"] = [_number(score.percentile) for score in scores.values()]
            shown["reasons"] = [plain(score.reason) for score in scores.values()]
            shown["references"] = [cut(reference) for reference in turn.references]
            shown["explanation"] = {
                name: plain(score.explanation)
                for name, score in scores.items()
                if explain and score.explanation
            }
        turns.append(shown)
    return {
        "number": number,
        "id": dialogue.id,
        "system": dialogue.system or "",
        "note": cut(note) if isinstance(note, str) else None,
        "turns": turns,
    }


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text, or its beginning and a remark if it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[:limit]}… [cut: {len(text):,} characters in all]"


def quotable(text: str) -> str:
    """Return as much of a text as a list of responses shows."""
    return cut(text, MAX_QUOTE)


def plain(value: object) -> Any:
    """Return the value as JSON allows it: anything else, like nan or an object, becomes text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _data(page: Page) -> str:
    """Return the data of the page's script, as JSON that is safe in an HTML script element."""
    groups = {group.system: index for index, group in enumerate(page.groups)}
    others = groups.get(None, 0)
    places = {talk["number"]: place for place, talk in enumerate(page.conversations)}
    columns = [
        {
            "name": name,
            "higher": column.sign > 0,
            "directed": column.better is not None,
            "sentinel": column.sentinel,
            "worst": _number(page.figures[name].worst_value),
            "drawing": page.drawings.get(name),
        }
        for name, column in page.columns.items()
    ]
    worst = []
    for name in page.columns:
        quotes = [(q, i) for i, group in enumerate(page.groups) for q in group.figures[name].worst]
        quotes.sort(key=lambda pair: page.figures[name].rank(pair[0]))
        worst.append([_quoted(quote, index, places) for quote, index in quotes])
    talks = [{**talk, "system": groups.get(talk["system"], others)} for talk in page.conversations]
    systems = [group.label for group in page.groups]
    return data_block({"columns": columns, "systems": systems, "worst": worst, "dialogues": talks})


def _quoted(quote: Quote, system: int, places: Mapping[int, int]) -> dict[str, Any]:
    return {
        "system": system,
        "id": quote.dialogue_id,
        "place": places.get(quote.dialogue),
        "turn": quote.turn,
        "before": quote.before,
        "text": quote.text,
        "value": quote.value,
    }


def _sentence(page: Page) -> str:
    groups = page.groups
    whose = ""
    if 1 < len(groups) <= 3:
        whose = f" of {listed([group.label for group in groups])}"
    elif len(groups) > 3:
        whose = f" of {len(groups)} systems"
    return (
        f"{counted(page.responses, 'response')} in "
        f"{counted(page.dialogues, 'conversation')}{whose}, "
        f"each scored by {counted(len(page.columns), 'metric')}."
    )


def _limits(page: Page) -> str:
    if len(page.conversations) == page.dialogues:
        return ""
    return (
        f"{len(page.conversations):,} of {page.dialogues:,} conversations are shown below; "
        "all figures and the worst responses cover every one of them."
    )


def _verdict(page: Page) -> str:
    """Return the verdict, the first thing a reader looks for, as a list; empty without one."""
    sentences = "".join(f"<li>{escape(shown(one))}</li>" for one in page.verdict)
    return f'<ul class="verdict">{sentences}</ul>' if sentences else ""


def _name(name: str, column: Column) -> str:
    higher = None if column.better is None else column.better == "higher"
    return column_name(name, higher_is_better=higher, sentinel=column.sentinel)


def _table(page: Page) -> str:
    heads = "".join(f'<th scope="col">{outside(group.label)}</th>' for group in page.groups)
    rows = "".join(
        f'<tr data-column="{index}"><th scope="row"><details><summary title="'
        f'{escape(column.help)}">{_name(name, column)}</summary><p>{escape(column.help)}</p>'
        f"</details></th>"
        f"{''.join(_cell(group.figures[name]) for group in page.groups)}</tr>"
        for index, (name, column) in enumerate(page.columns.items())
    )
    return (
        f'<table><thead><tr><th scope="col">metric</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _cell(figures: Figures) -> str:
    unscored = figures.unscored.total() - figures.empty
    missing = [(figures.empty, "empty"), (unscored, "unscored")]
    lacking = "".join(
        f', <span class="missing">{count:,} {what}</span>' for count, what in missing if count
    )
    spread = "" if figures.spread is None else f" <span>± {brief(figures.spread)}</span>"
    return (
        f"<td><b>{brief(figures.mean)}</b>{spread}"
        f"<small>{figures.scored:,} scored{lacking}</small></td>"
    )


def _chart(page: Page, index: int) -> str:
    name, column = list(page.columns.items())[index]
    groups = [(group.label, group.figures[name]) for group in page.groups]
    return (
        f'<article class="chart" data-column="{index}"><h3>{_name(name, column)}</h3>'
        f"{histograms(groups)}</article>"
    )
