"""Scores on request: networks that stay loaded, one queue for all clients, jobs for large files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from causerie.scoring import Plan
from causerie.server.api.jobroutes import PATH, job_router
from causerie.server.api.routes import score_router, state_router
from causerie.server.api.state import Api
from causerie.server.room import Page, Room

QUEUE = 2048
"""Most responses that may wait."""
TIMEOUT = 120.0
"""Most seconds that a request may take."""
LARGEST_FILE = 4 << 30
"""Most bytes in the file of a job."""


def api_room(
    plan: Plan,
    folder: Path,
    *,
    limit: int = QUEUE,
    timeout: float = TIMEOUT,
    load: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Room:
    """Return the room that scores with the metrics of a plan, and keeps its jobs in a folder.

    With `load`, networks are loaded as soon as the room opens; `tell` is called when they are.
    """
    api = Api(plan, folder, limit=limit, timeout=timeout, load=load, tell=tell)
    return Room(
        "score",
        "Score",
        "causerie.server.api",
        {"": Page("Score", "score.html", "score.js", ["score.css"])},
        [score_router(api), job_router(api), state_router(api)],
        prefixes=["/v1/", "/metrics"],
        limits={PATH: LARGEST_FILE},
        lifespan=api.running,
        observe=api.observe,
    )
