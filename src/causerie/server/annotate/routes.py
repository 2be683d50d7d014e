"""What annotators ask for: their work, one item of it, and keeping what they did."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from causerie.annotation.marks import Action, Event
from causerie.server.annotate.desk import Desk, Member, guideline_of, not_found, view_of
from causerie.server.answers import Json

MOST_EVENTS = 200
"""Of one request."""
Number = Annotated[int, Field(ge=0, lt=2**62)]


class Done(BaseModel):
    """One thing that an annotator did."""

    key: str = Field(min_length=8, max_length=64)
    action: Action
    body: dict[str, Any] = {}


class Events(BaseModel):
    """What an annotator did, in order."""

    events: list[Done] = Field(max_length=MOST_EVENTS)


def work_router(desk: Desk) -> APIRouter:
    """The routes of annotators; the lead has them as well, to adjudicate."""
    router = APIRouter(prefix="/annotate/api", tags=["annotation"])
    member = Depends(desk.member)

    @router.get("/me")
    def me(asks: Member = member) -> Json:
        """Who I am, what is asked of me, and how far I am."""
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
        """One assignment: what is shown, and what has been done to it."""
        return Json(view_of(*desk.own(asks, assignment)))

    @router.post("/work/{assignment}/events")
    async def keep(assignment: Number, done: Events, asks: Member = member) -> Json:
        """Keep what I did; when this answers, it is on disk. Sending it again does nothing."""
        events = [Event(one.key, one.action, one.body) for one in done.events]
        with not_found():
            kept = desk.store.append_soon(asks.project, assignment, asks.person, events)
            project = await asyncio.wrap_future(kept)
        return Json(view_of(project, project.assignments[assignment]))

    return router
