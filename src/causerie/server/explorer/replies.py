"""Rows of a run: pages of those that a filter finds, and whole conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from causerie.metrics.base import EMPTY
from causerie.server.explorer.filters import UNTOLD, Filter, Key
from causerie.server.explorer.runs import ScoredRun
from causerie.server.explorer.tables import Tables, place_of, rows_of, source

PAGE = 50
MOST = 20_000
"""Most rows read for conversations at once; more than that are a mistake in the ids."""

Row: TypeAlias = dict[str, Any]
"""A row of the table by our column names."""
Turn: TypeAlias = dict[str, Any]
"""A row, an unscored turn, or a gap."""
Talk: TypeAlias = tuple[str, str | None, str | None]
"""Dialogue, file and system of a conversation."""

_ABOUT = "row, dialogue, turn, speaker, file, system, text, explanation, conversation"


def count(tables: Tables, run: ScoredRun, wanted: Filter, marked: Sequence[Key] = ()) -> int:
    """Return the number of rows that a filter finds."""
    where, values = wanted.where(run, marked)
    query = f"SELECT count(*) FROM {rows_of(run)} WHERE {where}"
    return int(tables.ask(query, {**source(run), **values})[0][0])


def page(
    tables: Tables, run: ScoredRun, wanted: Filter, number: int = 0, marked: Sequence[Key] = ()
) -> list[Row]:
    """Return one page of the rows that a filter finds."""
    return _found(tables, run, wanted, marked, PAGE, number * PAGE)


def blocks(
    tables: Tables, run: ScoredRun, wanted: Filter, marked: Sequence[Key] = (), size: int = 1000
) -> Iterator[list[Row]]:
    """Yield all rows that a filter finds, `size` at a time."""
    start = 0
    while found := _found(tables, run, wanted, marked, size, start):
        yield found
        start += size


def _found(
    tables: Tables,
    run: ScoredRun,
    wanted: Filter,
    marked: Sequence[Key],
    size: int,
    start: int,
) -> list[Row]:
    """Find the numbers of the rows from few columns, then read these rows in full."""
    where, values = wanted.where(run, marked)
    order, others = wanted.by(run, tables)
    chosen = tables.ask(
        f"SELECT row FROM {rows_of(run)} WHERE {where} ORDER BY {order} LIMIT $size OFFSET $start",
        {**source(run), **values, **others, "size": size, "start": start},
    )
    numbers = [row for (row,) in chosen]
    found = {row["row"]: row for row in rows(tables, run, numbers)}
    return [found[number] for number in numbers]


def rows(tables: Tables, run: ScoredRun, numbers: Sequence[int]) -> list[Row]:
    """Return these rows of a run in full."""
    if not numbers:
        return []
    return _read(
        tables, run, "row IN (SELECT unnest($numbers::BIGINT[]))", {"numbers": list(numbers)}
    )


def conversation(
    tables: Tables,
    run: ScoredRun,
    dialogue: str,
    file: str | None = None,
    system: str | None = None,
) -> list[list[Turn]]:
    """Return the known turns of a conversation, as several lists if it was held repeatedly.

    A turn without a row has no `scores`; missing turns are a `gap`.
    """
    talks = conversations(tables, run, [dialogue])
    return [
        talk
        for (_, of_file, of_system), found in talks.items()
        if file in (None, of_file) and system in (None, of_system or "")
        for talk in found
    ]


def conversations(
    tables: Tables, run: ScoredRun, dialogues: Sequence[str]
) -> dict[Talk, list[list[Turn]]]:
    """Return the conversations with these ids, by dialogue, file and system."""
    values = {"dialogues": list(dialogues)}
    found = _read(tables, run, "dialogue IN (SELECT unnest($dialogues::VARCHAR[]))", values, MOST)
    talks: dict[Talk, list[list[Turn]]] = {}
    last: dict[Talk, Row] = {}
    for row in found:
        key = talk_of(row)
        before = last.get(key)
        if before is None or (row["turn"] or 0) <= (before["turn"] or 0):
            talks.setdefault(key, []).append([])
            before = None
        talks[key][-1] += _turns(row, before)
        last[key] = row
    return talks


def talk_of(row: Row) -> Talk:
    """Return the conversation that a row belongs to."""
    return row["dialogue"], row["file"], row["system"]


def _turns(row: Row, last: Row | None) -> Iterator[Turn]:
    """Yield the turns between two rows, that of the second, and those after it."""
    around = row.pop("conversation")
    turn = row["turn"]
    start = -1 if last is None else last["turn"]
    if around is None:
        missing = (turn or 0) - start - 1
        if missing:
            yield {"gap": missing}
        yield {**row, "side": "system"}
        return
    before = _said(around.get("before"))
    for index, said in enumerate(before, (turn or 0) - len(before)):
        yield {"turn": index, **said}
    yield {**row, "side": "user" if around.get("side") == "user" else "system"}
    for index, said in enumerate(_said(around.get("after")), (turn or 0) + 1):
        yield {"turn": index, **said}


def _said(turns: object) -> list[dict[str, str]]:
    """Return the turns in a cell, with the expected fields only."""
    return [
        {name: str(turn.get(name) or "") for name in ("speaker", "side", "text")}
        for turn in (turns if isinstance(turns, list) else [])
        if isinstance(turn, dict)
    ]


def _read(
    tables: Tables, run: ScoredRun, where: str, values: dict[str, Any], limit: int | None = None
) -> list[Row]:
    places = [place_of(run, scores) for scores in run.scores.values()]
    numbers = "".join(f", m{i}, p{i}" for i in places)
    end = f" ORDER BY row LIMIT {limit:d}" if limit else ""
    found = tables.ask(
        f"SELECT {_ABOUT}{numbers} FROM {rows_of(run)} WHERE {where}{end}",
        {**source(run), **values},
    )
    return [_row(run, row) for row in found]


def _row(run: ScoredRun, row: tuple[Any, ...]) -> Row:
    names = _ABOUT.split(", ")
    told: Row = dict(zip(names, row, strict=False))
    numbers = row[len(names) :]
    explanation = _object(told["explanation"]) or {}
    told["conversation"] = _object(told["conversation"])
    told["scores"] = dict(zip(run.scores, numbers[::2], strict=True))
    told["percentiles"] = dict(zip(run.scores, numbers[1::2], strict=True))
    told["reasons"] = {
        name: _reason(told["text"], explanation.get(name))
        for name, value in told["scores"].items()
        if value is None
    }
    told["explanation"] = {n: e for n, e in explanation.items() if n not in told["reasons"]}
    return told


def _reason(text: str | None, explained: object) -> str:
    if text is not None and not text.strip():
        return str(EMPTY.reason)
    reason = explained.get("unscored") if isinstance(explained, dict) else None
    return reason if isinstance(reason, str) else UNTOLD


def _object(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object in a cell; None if it is missing or damaged."""
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
