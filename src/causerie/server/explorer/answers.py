"""The data of the explorer's pages as plain JSON: names to query with, and labels to show.

All foreign text passes through `shown`; what is needed for further queries (ids, names of systems
and runs) is also sent unchanged, and appears only in addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from causerie.render.numbers import counted
from causerie.render.page import all_shown, shown
from causerie.server.explorer import comparison, findings, overview, replies
from causerie.server.explorer.export import key_of
from causerie.server.explorer.filters import Filter
from causerie.server.explorer.marks import Mark, Marks
from causerie.server.explorer.runs import Library, ScoredRun, Scores
from causerie.server.explorer.tables import Tables
from causerie.stats import Estimate

BEFORE = 300
"""Most characters shown of the turn before a reply."""


def described(run: ScoredRun) -> dict[str, Any]:
    """Return a description of a run and its columns."""
    inputs = run.about.get("inputs")
    return {
        **named(run.name),
        "rows": run.rows,
        "written": datetime.fromtimestamp(run.written, timezone.utc).isoformat(timespec="seconds"),
        "level": "turn" if run.is_of_turns else "dialogue",
        "whole": "conversation" in run.places,
        "main": run.main.name,
        "inputs": [shown(str(i)) for i in (inputs if isinstance(inputs, list) else [])],
        "columns": [
            {
                **named(scores.name),
                "help": shown(scores.about.help),
                "better": scores.about.better,
                "sentinel": scores.about.sentinel,
                "percentiles": scores.percentile is not None,
                "drawing": scores.drawing,
                "fault": shown(findings.fault_name(scores.name)) if scores.is_fault else None,
                "limit": scores.limit if scores.is_fault else None,
            }
            for scores in run.scores.values()
        ],
    }


def history(tables: Tables, library: Library, metric: str | None) -> dict[str, Any]:
    """Return all runs, latest first, with the mean of one column in each."""
    runs = library.runs()
    names = list(dict.fromkeys(name for run in runs.values() for name in run.scores))
    if metric is None and runs:
        metric = library.run(None).main.name
    told = []
    for run in runs.values():
        scores = run.scores.get(metric or "")
        mean = overview.whole(tables, run, scores).estimate() if scores else None
        told.append({**described(run), "mean": estimate(mean), "plan": _plan(run)})
    return {"metric": named(metric or ""), "metrics": [named(name) for name in names], "runs": told}


def overall(tables: Tables, run: ScoredRun, scores: Scores) -> dict[str, Any]:
    """Return the data of the first screen: figures of every system, and one column in detail."""
    profile, found = tables.profile(run), overview.systems(tables, run)
    ranking = overview.ranking(found, scores)
    behind = {s.name: gap for s, gap in zip(ranking.systems[1:], ranking.behind, strict=True)}
    mean = overview.whole(tables, run, scores)
    return {
        "run": described(run),
        "metric": named(scores.name),
        "dialogues": profile.dialogues,
        "sentences": [
            sentence
            for sentence in (
                findings.how_good(scores, mean.estimate(), profile),
                findings.which_is_better(scores, ranking),
                findings.where_it_fails(run, found, profile, scores),
            )
            if sentence
        ],
        "notes": _notes(run),
        "mean": estimate(mean.estimate()),
        "order": [system.name for system in ranking.systems],
        "systems": [
            {
                "name": system.name,
                "label": findings.label_of(system.name),
                "rows": system.rows,
                "dialogues": system.dialogues,
                "means": {n: estimate(m.estimate()) for n, m in system.moments.items()},
                "unscored": system.unscored,
                "faults": system.faults,
                "behind": _behind(behind.get(system.name)),
            }
            for system in found
        ],
        "distribution": _distribution(overview.distribution(tables, run, scores)),
        "along": [
            {"system": findings.label_of(system), "turn": turn, "mean": value, "n": count}
            for system, turn, value, count in overview.along(tables, run, scores)
        ],
        "reasons": {
            shown(reason): count for reason, count in overview.reasons(tables, run, scores).items()
        },
    }


def choices(tables: Tables, run: ScoredRun, scores: Scores, marks: Marks) -> dict[str, Any]:
    """Return the values that a filter can choose from."""
    return {
        "run": described(run),
        "metric": named(scores.name),
        "steps": overview.steps(tables, run, scores),
        "systems": [
            {"name": s.name or "", "label": findings.label_of(s.name)}
            for s in overview.systems(tables, run)
        ],
        "speakers": [named(speaker) for speaker in overview.speakers(tables, run)],
        "reasons": [named(reason) for reason in overview.reasons(tables, run, scores)],
        "tags": [{**named(tag), "count": n} for tag, n in marks.tags(run.name).items()],
    }


def listed(
    tables: Tables, run: ScoredRun, wanted: Filter, number: int, marks: Marks
) -> dict[str, Any]:
    """Return a page of the replies that a filter finds."""
    marked = marks.keys(run.name, wanted.tag) if wanted.tag is not None else ()
    found = replies.page(tables, run, wanted, number, marked)
    return {
        "count": replies.count(tables, run, wanted, marked),
        "page": number,
        "size": replies.PAGE,
        "rows": [_reply(row) for row in _marked(run, found, marks)],
    }


def talk(
    tables: Tables,
    run: ScoredRun,
    dialogue: str,
    file: str | None,
    system: str | None,
    marks: Marks,
) -> dict[str, Any]:
    """Return a whole conversation."""
    found = replies.conversation(tables, run, dialogue, file, system)
    return {
        **named(dialogue),
        "talks": [[_turn(turn) for turn in _marked(run, turns, marks)] for turns in found],
    }


def versus(
    tables: Tables,
    a: comparison.Side,
    b: comparison.Side,
    scores: Scores,
    order: str,
    page: int,
) -> dict[str, Any]:
    """Return the comparison of two sides by one column, and the replies that changed most."""
    found = comparison.versus(tables, a, b, scores.name, page, order)
    label_a, label_b = (_label(side) for side in (a, b))
    rows_a = {r["row"]: r for r in replies.rows(tables, a.run, [p[0] for p in found.changed])}
    rows_b = {r["row"]: r for r in replies.rows(tables, b.run, [p[1] for p in found.changed])}
    how = (
        "Each side has conversations of its own: the means are compared."
        if found.pairs is None
        else f"{counted(found.pairs, 'pair')} of replies at the same turn of the same conversation."
    )
    return {
        "a": {**described(a.run), "side": label_a, "mean": estimate(found.a)},
        "b": {**described(b.run), "side": label_b, "mean": estimate(found.b)},
        "metric": named(scores.name),
        "better": scores.about.better,
        "sentence": findings.versus(label_a, label_b, scores, found.difference, found.p),
        "how": how,
        "difference": estimate(found.difference),
        "p": found.p,
        "pairs": found.pairs,
        "size": replies.PAGE,
        "changed": [
            {"a": _reply(rows_a[i]), "b": _reply(rows_b[j]), "from": x, "to": y}
            for i, j, x, y in found.changed
        ],
    }


def named(name: str) -> dict[str, str]:
    """Return a foreign name twice: unchanged for queries, and as it may be shown."""
    return {"name": name, "label": shown(name)}


def estimate(found: Estimate | None) -> dict[str, Any] | None:
    """Return a number with its interval, or None without a value."""
    if found is None or found.value is None:
        return None
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _marked(
    run: ScoredRun, rows: Iterable[dict[str, Any]], marks: Marks
) -> Iterable[dict[str, Any]]:
    """Yield the rows with their tags and comments."""
    kept = list(rows)
    noted = marks.of(run.name, [key_of(row) for row in kept if "row" in row])
    for row in kept:
        mark = noted.get(key_of(row), Mark()) if "row" in row else None
        yield row if mark is None else {**row, "tags": list(mark.tags), "comment": mark.comment}


def _reply(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a list, with the turn before it."""
    around = row["conversation"] or {}
    before = around.get("before")
    last = before[-1] if isinstance(before, list) and before else None
    said = last.get("text") if isinstance(last, dict) else None
    told = _turn(row)
    told["before"] = shown(said[-BEFORE:]) if isinstance(said, str) else None
    return told


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn for a conversation."""
    if "gap" in turn:
        return {"gap": turn["gap"]}
    told = {
        "turn": turn["turn"],
        "speaker": shown(turn["speaker"] or ""),
        "text": None if turn["text"] is None else shown(turn["text"]),
        "side": turn.get("side", "system"),
    }
    if "row" not in turn:
        return told
    return {
        **told,
        "row": turn["row"],
        "dialogue": named(turn["dialogue"] or ""),
        "file": turn["file"],
        "system": {"name": turn["system"], "label": findings.label_of(turn["system"])},
        "scores": turn["scores"],
        "percentiles": turn["percentiles"],
        "reasons": all_shown(turn["reasons"]),
        "explanation": {name: all_shown(e) for name, e in turn["explanation"].items()},
        "tags": turn.get("tags", []),
        "comment": turn.get("comment", ""),
    }


def _distribution(found: overview.Distribution | None) -> dict[str, Any] | None:
    if found is None:
        return None
    axis = found.axis
    return {
        "edges": [axis.edge(bar) for bar in range(axis.bars + 1)],
        "ticks": [step * axis.step for step in range(axis.first, axis.last + 1)],
        "below": axis.below,
        "above": axis.above,
        "systems": [
            {"label": findings.label_of(system), "shares": shares}
            for system, shares in found.systems
        ],
    }


def _behind(gap: tuple[Estimate, float | None] | None) -> dict[str, Any] | None:
    if gap is None:
        return None
    return {**(estimate(gap[0]) or {}), "chance": findings.chance(gap[1]), "p": gap[1]}


def _label(side: comparison.Side) -> str:
    label = shown(side.run.name)
    return label if side.system is None else f"{findings.label_of(side.system)} in {label}"


def _plan(run: ScoredRun) -> str:
    """Return the metrics of a run, as inferred from its columns."""
    return ", ".join(dict.fromkeys(shown(name.partition(".")[0]) for name in run.scores))


def _notes(run: ScoredRun) -> list[str]:
    """Return sentences on what the run left out or cut."""

    def number(value: object) -> int:
        return value if isinstance(value, int) else 0

    about, notes = run.about, []
    if rejected := number(about.get("rejected")):
        notes.append(f"{rejected:,} of {counted(number(about.get('records')), 'record')} skipped.")
    if nothing := number(about.get("nothing")):
        notes.append(f"{counted(nothing, 'conversation')} had no reply to score.")
    if tools := number(about.get("tool_messages")):
        notes.append(f"{counted(tools, 'tool message')} left out.")
    cuts = about.get("cuts")
    for engine, counts in cuts.items() if isinstance(cuts, dict) else ():
        match counts:
            case [int(cut), int(seen)] if cut:
                notes.append(
                    f"The {shown(engine)} saw {cut:,} of {seen:,} inputs only in part: they are "
                    "longer than its window."
                )
    if not run.is_of_turns:
        notes.append("Each row is a whole conversation.")
    return notes


def plain_about(run: ScoredRun) -> dict[str, Any]:
    """Return the metadata of a run's table, as text that may be shown."""
    told = all_shown(dict(run.about))
    assert isinstance(told, dict)
    return {"about": told}
