"""Annotators' requests: their work, a single item, and storing events."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from causerie.annotation.marks import Action, Event
from causerie.server.annotate.desk import Desk, Member, guideline_of, not_found, view_of
from causerie.server.answers import Json

MOST_EVENTS = 200
"""Most events per request."""
Number = Annotated[int, Field(ge=0, lt=2**62)]


class Done(BaseModel):
    """A single action of an annotator."""

    key: str = Field(min_length=8, max_length=64)
    action: Action
    body: dict[str, Any] = {}


class Events(BaseModel):
    """An annotator's actions, in order."""

    events: list[Done] = Field(max_length=MOST_EVENTS)


def work_router(desk: Desk) -> APIRouter:
    """Return the routes of annotators, which the lead also has for adjudication."""
    router = APIRouter(prefix="/annotate/api", tags=["annotation"])
    member = Depends(desk.member)

    @router.get("/me")
    def me(asks: Member = member) -> Json:
        """The caller's identity, task, and progress."""
        project = desk.store.snapshot(asks.project, person=asks.person)
        person = project.people.get(asks.person)
        work = [
            {
                "id": one.id,
                "round": one.round,
                "finished": project.states[one.id].finished,
                "begun": bool(project.events.get(one.id)),
            }
            for one in project.of_person(asks.person)
        ]
        return Json(
            {
                "id": asks.person,
                "name": person.name if person else asks.name,
                "leads": asks.may(frozenset({"lead"})),
                "project": project.name,
                "fingerprint": desk.store.fingerprint(asks.project),
                "task": project.task.to_json(),
                "guideline": guideline_of(project),
                "work": work,
            }
        )

    @router.get("/work/{assignment}")
    def work(assignment: Number, asks: Member = member) -> Json:
        """One assignment: what to show, and what has been done to it."""
        return Json(view_of(*desk.own(asks, assignment)))

    @router.post("/work/{assignment}/events")
    async def keep(assignment: Number, done: Events, asks: Member = member) -> Json:
        """Store actions. They are on disk when this answers; sending them again has no effect."""
        events = [Event(one.key, one.action, one.body) for one in done.events]
        with not_found():
            kept = desk.store.append_soon(asks.project, assignment, asks.person, events)
            project = await asyncio.wrap_future(kept)
        return Json(view_of(project, project.assignments[assignment]))

    return router
