"""The page itself: figures drawn here, conversations drawn in the browser by `page.js`."""

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
    """Chooses the conversations that a page shows in full: the first, as long as there is room."""

    explain: bool = True
    """Whether it shows explanations."""
    dialogues: int = 0
    characters: int = 0

    def add(
        self, number: int, dialogue: Dialogue, scored: Mapping[int, Mapping[str, Score]]
    ) -> dict[str, Any] | None:
        """The conversation as the page wants it; None if there is no room for it.

        `number` is its place among all conversations; `scored` has the scores of its turns.
        """
        if self.dialogues >= MAX_DIALOGUES:
            return None
        talk = conversation(number, dialogue, scored, self.explain)
        return talk if self.take(talk) else None

    def take(self, talk: Mapping[str, Any]) -> bool:
        """Count a conversation, if there is room for it."""
        size = len(json.dumps(talk))
        if self.dialogues >= MAX_DIALOGUES or self.characters + size > MAX_CHARACTERS:
            return False
        self.dialogues += 1
        self.characters += size
        return True


@dataclass(frozen=True)
class Page:
    """Everything that a page shows; its size has a bound, however much was scored."""

    title: str
    signature: str
    columns: Mapping[str, Column]
    groups: Sequence[Group]
    figures: Mapping[str, Figures]
    """Of all groups together."""
    conversations: Sequence[Mapping[str, Any]]
    """As `conversation` makes them; those that are shown in full."""
    dialogues: int
    """How many there are in all."""
    responses: int
    drawings: Mapping[str, str] = field(default_factory=dict)
    """By column, how the page draws its explanations: "arcs", "graph"; otherwise as lists."""
    notes: Sequence[str] = ()
    """What was skipped, or had nothing to be scored."""
    verdict: Sequence[str] = ()
    """How good the systems are, in sentences."""


def write_report(path: Path, page: Page) -> None:
    """Write the page of `build_report` to a file, which appears whole or not at all."""
    write_whole(path, build_report(page))


def build_report(page: Page) -> str:
    """A self-contained HTML page about scored conversations; nothing in it needs a network.

    Figures and worst responses cover everything, conversations are shown in full up to a limit,
    and the page says so.
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
    """A conversation as plain JSON: who said what, and the scores of some of its turns."""
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
    """The text, or its beginning and a remark if it is long."""
    return text if len(text) <= limit else f"{text[:limit]}… [cut: {len(text):,} characters in all]"


def quotable(text: str) -> str:
    """As much of a text as a list of responses shows."""
    return cut(text, MAX_QUOTE)


def plain(value: object) -> Any:
    """The value as JSON can hold it: what is not a finite number, text, list or mapping is text."""
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
    """What the page's script needs, as JSON text that may stand in an HTML script element."""
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
    """The first thing that somebody wants to know, or nothing."""
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
