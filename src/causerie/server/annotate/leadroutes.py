"""The lead's requests: progress, agreement, links, rounds, and results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from causerie.annotation.agreement import (
    agreement,
    disagreements,
    over_time,
    qualities,
)
from causerie.annotation.assignment import first_round, reviewers_of, second_round
from causerie.annotation.formats import FORMATS, check_format, export
from causerie.annotation.project import ROUNDS, NewAssignment, Snapshot
from causerie.errors import CauserieError
from causerie.server.annotate.desk import LEAD, Desk, Member, state_view, turn_view
from causerie.server.annotate.routes import Number
from causerie.server.answers import Json
from causerie.server.safety import needs
from causerie.stats import Estimate

MOST = 50
"""Most items listed by disagreement."""


class Named(BaseModel):
    """The name of a person in the project."""

    name: str = Field(min_length=1, max_length=100)


class Reviewers(BaseModel):
    """Names of the reviewers; empty for the better half of the annotators."""

    names: list[str] = Field(default=[], max_length=1000)


def lead_router(desk: Desk) -> APIRouter:
    """Return the routes of the lead, within one project."""
    router = APIRouter(
        prefix="/annotate/api/lead", tags=["annotation"], dependencies=[Depends(needs(LEAD))]
    )
    member = Depends(desk.member)

    @router.get("")
    def overview(asks: Member = member) -> Json:
        """Everybody's progress and agreement."""
        project = desk.store.snapshot(asks.project)
        return Json({**overview_of(project), "curve": _curve(desk)})

    @router.get("/items/{item}")
    def side_by_side(item: Number, asks: Member = member) -> Json:
        """All work on an item."""
        return Json(item_view(desk.store.snapshot(asks.project, item=item), item))

    @router.post("/items/{item}/adjudicate")
    def adjudicate(item: Number, asks: Member = member) -> Json:
        """Assign an item to the lead for a decision; returns the number of that assignment."""

        def plan(project: Snapshot) -> Iterator[NewAssignment]:
            if not project.task.is_marked:
                raise CauserieError("judgements are not adjudicated: every answer counts")
            if not project.finished(item, "first", "review"):
                raise CauserieError("nobody has finished this item yet")
            if asks.person not in project.people:
                raise CauserieError(
                    "the project has no lead: add one with causerie annotate invite --lead"
                )
            if not _own_of(project, item, asks.person):
                yield NewAssignment(item, asks.person, "adjudication")

        desk.store.assign(asks.project, plan)
        project = desk.store.snapshot(asks.project, item=item)
        return Json({"work": _own_of(project, item, asks.person)[0]})

    @router.post("/people")
    def invite(named: Named, asks: Member = member) -> Json:
        """Add an annotator, or give an existing one a new link, which is shown only once."""
        token = desk.store.add_person(asks.project, named.name.strip(), "annotator")
        assigned = desk.store.assign(asks.project, first_round)
        return Json({"token": token, "assigned": assigned})

    @router.post("/revoke")
    def revoke(named: Named, asks: Member = member) -> Json:
        """End a link; its holder's unfinished items are assigned to others."""
        desk.store.revoke(asks.project, named.name)
        return Json({"assigned": desk.store.assign(asks.project, first_round)})

    @router.post("/review")
    def review(reviewers: Reviewers, asks: Member = member) -> Json:
        """Begin or continue the second round."""

        def plan(project: Snapshot) -> Iterator[NewAssignment]:
            return second_round(project, reviewers_of(project, reviewers.names))

        return Json({"assigned": desk.store.assign(asks.project, plan)})

    @router.get("/export/{format}")
    def results(format: str, asks: Member = member) -> StreamingResponse:
        """Download all work at this moment as a file."""
        project = desk.store.snapshot(asks.project)
        if format == "brat":
            raise CauserieError("brat has several files: use causerie annotate export")
        check_format(project.task, format)
        suffix = "json" if format in ("cgdialog", "labelstudio") else "jsonl"
        return StreamingResponse(
            export(project, format),
            media_type="application/octet-stream",
            headers={"content-disposition": f'attachment; filename="annotations.{suffix}"'},
        )

    return router


def _own_of(project: Snapshot, item: int, person: int) -> list[int]:
    found = project.by_item.get(item, {}).get("adjudication", ())
    return [one.id for one in found if one.person == person]


def overview_of(project: Snapshot) -> dict[str, Any]:
    """Return the data of the lead's page."""
    found = agreement(project)
    quality, curves = qualities(project), over_time(project)
    work = [listed for listed in project.items.values() if listed.gold is None]
    done = [listed for listed in work if project.final(listed.id)]
    reviewers: list[str] = []
    if project.task.is_marked:
        reviewers = [person.name for person in reviewers_of(project)]
    return {
        "project": project.name,
        "task": project.task.to_json(),
        "items": len(work),
        "done": len(done),
        "settled": sum(project.is_settled(listed.id) for listed in done),
        "rounds": _rounds(project),
        "people": [
            {
                "name": person.name,
                "role": person.role,
                "active": person.active,
                "rounds": _rounds(project, person.id),
                "seconds": _median_seconds(project, person.id),
                "gold": _estimate(quality[person.id].gold),
                "others": _estimate(quality[person.id].others),
                "curve": curves.get(person.id, []),
            }
            for person in project.people.values()
        ],
        "agreement": {
            "items": found.items,
            "measures": {
                name: {measure: _estimate(one) for measure, one in measures.items()}
                for name, measures in found.by_name.items()
            },
            "between": [
                {
                    "first": one.first,
                    "second": one.second,
                    "items": one.items,
                    "measures": {name: _estimate(value) for name, value in one.measures.items()},
                }
                for one in found.between
            ],
        },
        "disagreements": [
            {
                "item": item,
                "name": project.items[item].item.name,
                "disagreement": value,
                "settled": project.is_settled(item),
            }
            for item, value in disagreements(project)[:MOST]
            if value > 0
        ],
        "reviewers": reviewers,
        "formats": [name for name in FORMATS if name != "brat" and _can_hold(project, name)],
    }


def item_view(project: Snapshot, item: int) -> dict[str, Any]:
    """Return an item with everybody's marks, side by side."""
    listed = project.items.get(item)
    if listed is None:
        raise HTTPException(404, "this project has no such item")
    final = project.final(item)
    return {
        "name": listed.item.name,
        "kind": project.task.kind,
        "turns": [turn_view(turn) for turn in listed.item.turns],
        "markable": len(listed.item.markable(project.task)) if project.task.is_marked else 0,
        "responses": [{"system": one.system, "text": one.text} for one in listed.item.candidates],
        "settled": final is not None and project.is_settled(item),
        "works": [
            {
                "name": project.people[one.person].name,
                "round": one.round,
                "counts": final is not None and final.id == one.id,
                "seconds": project.seconds(one.id),
                **state_view(project.judged(one.id)),
            }
            for wanted in ROUNDS
            for one in project.by_item.get(item, {}).get(wanted, ())
            if project.events.get(one.id)
        ],
    }


def _rounds(project: Snapshot, person: int | None = None) -> dict[str, dict[str, int]]:
    given: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    for one in project.assignments.values():
        if person in (None, one.person):
            given[one.round] += 1
            finished[one.round] += project.states[one.id].finished
    return {r: {"assigned": given[r], "finished": finished[r]} for r in ROUNDS if given[r]}


def _median_seconds(project: Snapshot, person: int) -> float | None:
    times = [
        project.seconds(one.id)
        for one in project.assignments.values()
        if one.person == person and project.states[one.id].finished
    ]
    return median(times) if times else None


def _estimate(one: Estimate) -> dict[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "n": one.n, "reason": one.reason}


def _can_hold(project: Snapshot, format: str) -> bool:
    try:
        check_format(project.task, format)
    except CauserieError:
        return False
    return True


def _curve(desk: Desk) -> list[Any]:
    """Return the learning curve of a training, as far as it has got, or nothing without one."""
    path = desk.training / "learning-curve.jsonl" if desk.training else None
    if path is None or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
