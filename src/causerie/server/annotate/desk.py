"""Who makes a request, and what they may see of a project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import HTTPException, Request

from causerie.annotation.marks import UNDOABLE, effective
from causerie.annotation.project import Assignment, Snapshot, reviewed
from causerie.annotation.store import NotTheirsError, Store
from causerie.annotation.tasks import clauses
from causerie.dialogue import Turn
from causerie.server.safety import Identity, who

ANNOTATOR, LEAD = "annotator", "lead"


@dataclass(frozen=True)
class Member(Identity):
    """A person with a link to a project."""

    project: int = 0
    person: int = 0


@dataclass(frozen=True)
class Desk:
    """What the annotation routes share: the store, the owner's project and its training."""

    store: Store
    project: int
    """Number of the project that the owner of the server sees."""
    training: Path | None = None

    def identify(self, token: str) -> Member | None:
        """Return the person a project has given this token to, if any."""
        found = self.store.who(token)
        if found is None:
            return None
        project, person = found
        home = "/annotate/lead" if person.role == LEAD else "/annotate/"
        name = f"{project}/{person.id}"
        return Member(name, frozenset({person.role}), home, project, person.id)

    def member(self, request: Request) -> Member:
        """Return who makes the request; the owner of the server is the lead of their project."""
        identity = who(request)
        if isinstance(identity, Member):
            return identity
        people = self.store.snapshot(self.project, person=0).people.values()
        lead = next((one.id for one in people if one.role == LEAD), 0)
        return Member(identity.name, identity.roles, "/annotate/lead", self.project, lead)

    def own(self, member: Member, assignment: int) -> tuple[Snapshot, Assignment]:
        """Return somebody's own assignment with its item; those of others are not found."""
        with not_found():
            item = self.store.item_of(member.project, assignment, member.person)
        project = self.store.snapshot(member.project, item=item)
        return project, project.assignments[assignment]


@contextmanager
def not_found() -> Iterator[None]:
    """Turn requests for other people's work into 404, which reveals nothing about it."""
    try:
        yield
    except NotTheirsError as error:
        raise HTTPException(404, str(error)) from None


def guideline_of(project: Snapshot) -> dict[str, Any]:
    """Return the project's own guideline, or the default one with its examples."""
    if own := project.settings.guideline.strip():
        return {"text": [part for part in own.split("\n\n") if part.strip()], "examples": []}
    text = resources.files("causerie.annotation").joinpath("guideline.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)[project.task.kind]
    return found


def view_of(project: Snapshot, one: Assignment) -> dict[str, Any]:
    """Return what an annotator may see of an assignment: no names of items or systems."""
    listed, state = project.items[one.item], project.states[one.id]
    item, task = listed.item, project.task
    shown = item.candidates[::-1] if one.swapped else item.candidates
    events = project.events.get(one.id, ())
    start = None if one.base is None else reviewed(project.states[one.base])
    view: dict[str, Any] = {
        "id": one.id,
        "round": one.round,
        "turns": [turn_view(turn) for turn in item.turns],
        "markable": len(item.markable(task)) if task.is_marked else 0,
        "asked": list(item.asked) if task.kind == "replies" else [],
        "responses": [candidate.text for candidate in shown],
        "closed": project.is_closed(one),
        "start": None if start is None else state_view(start),
        "events": [{"key": e.key, "action": e.action, "body": dict(e.body)} for e in events],
        "finished": state.finished,
        "undoable": [e.key for e in effective(events) if e.action in UNDOABLE],
    }
    if one.round == "dry" and state.finished and listed.gold is not None:
        view["right"] = state_view(listed.gold)
    if one.round == "adjudication":
        view["others"] = [
            {"name": f"Annotator {number}", **state_view(project.states[other.id])}
            for number, other in enumerate(project.finished(one.item, "first", "review"), 1)
        ]
    return view


def turn_view(turn: Turn) -> dict[str, Any]:
    return {"speaker": turn.speaker, "text": turn.text, "clauses": clauses(turn.text)}


def state_view(state: Any) -> dict[str, Any]:
    """Return a state as JSON; places count Unicode characters, unlike offsets in JavaScript."""
    return {
        "marks": [
            {
                "key": mark.key,
                "turn": mark.place.turn,
                "start": mark.place.start,
                "stop": mark.place.stop,
                "label": mark.label,
            }
            for mark in state.marks
        ],
        "none": state.none,
        "answers": [
            {"turn": turn, "question": question, "value": value}
            for (turn, question), value in state.answers.items()
        ],
        "comment": state.comment,
        "finished": state.finished,
    }
