"""Selected replies as JSON lines that `score`, `train`, `annotate` and judged sets can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

from causerie.errors import CauserieError
from causerie.server.explorer import replies
from causerie.server.explorer.filters import Filter, Key
from causerie.server.explorer.marks import Mark, Marks
from causerie.server.explorer.runs import ScoredRun
from causerie.server.explorer.tables import Tables

What: TypeAlias = Literal["replies", "conversations"]


def check(run: ScoredRun) -> None:
    """Raise an error for a run whose rows do not include the context of a reply."""
    if not run.is_of_turns or "conversation" not in run.places:
        raise CauserieError(
            f"{run.name} has no conversations to export: score with --conversations"
        )


def lines(
    tables: Tables,
    run: ScoredRun,
    wanted: Filter,
    what: What,
    marks: Marks,
    marked: Sequence[Key] = (),
) -> Iterator[str]:
    """Yield one record per line: replies with their context, or their whole conversations."""
    seen = set()
    for block in replies.blocks(tables, run, wanted, marked):
        talks = replies.conversations(tables, run, [row["dialogue"] for row in block])
        noted = marks.of(run.name, map(key_of, block))
        for row in block:
            of = replies.talk_of(row)
            if what == "conversations" and of in seen:
                continue
            seen.add(of)
            for turns in talks.get(of, []):
                places = [turn.get("row") for turn in turns]
                if row["row"] in places:
                    mark = noted.get(key_of(row))
                    record = _record(row, turns, places.index(row["row"]), what, mark)
                    yield json.dumps(record, ensure_ascii=False) + "\n"


def key_of(row: dict[str, Any]) -> Key:
    """Return the key by which marks identify a row."""
    turn = row["turn"]
    return row["dialogue"] or "", row["system"] or "", -1 if turn is None else turn


def _record(
    row: dict[str, Any], turns: list[dict[str, Any]], place: int, what: What, mark: Mark | None
) -> dict[str, Any]:
    said = [
        {"speaker": turn["speaker"] or "", "role": turn["side"], "text": turn["text"] or ""}
        for turn in turns
    ]
    system = {"system": row["system"]} if row["system"] else {}
    if what == "conversations":
        return {"id": row["dialogue"], **system, "turns": said}
    return {
        "id": f"{row['dialogue']}#{row['turn']}",
        **system,
        "context": said[:place],
        "response": said[place],
        "scores": row["scores"],
        **({"tags": mark.tags, "comment": mark.comment} if mark else {}),
    }
