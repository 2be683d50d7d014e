"""Annotation in the browser: pages for annotators and for the lead of a project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from causerie.annotation.store import Store
from causerie.server.annotate.desk import ANNOTATOR, LEAD, Desk
from causerie.server.annotate.leadroutes import lead_router
from causerie.server.annotate.routes import work_router
from causerie.server.room import Page, Room

NAME = "annotate"
_STYLES = ("annotate.css",)


def annotation_room(store: Store, project: int, *, training: Path | None = None) -> Room:
    """Return the room of a database of projects, which it closes at the end.

    Links open the project they were made for; the owner of the server sees `project`. `training`
    is the folder of a training whose learning curve is shown to the lead.
    """
    desk = Desk(store, project, training)

    @asynccontextmanager
    async def open_store() -> AsyncIterator[None]:
        yield
        store.close()

    lead = frozenset({LEAD})
    return Room(
        NAME,
        "Annotation",
        "causerie.server.annotate",
        {
            "": Page("Annotation", "work.html", "work.js", _STYLES),
            "lead": Page("Lead", "lead.html", "lead.js", _STYLES, lead),
            "item": Page("Side by side", "item.html", "item.js", _STYLES, lead),
        },
        [work_router(desk), lead_router(desk)],
        roles=frozenset({ANNOTATOR, LEAD}),
        identify=desk.identify,
        lifespan=open_store,
    )
