"""The explorer as a room of the web application: its pages and their API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field

from causerie.errors import CauserieError
from causerie.render.page import part
from causerie.server.explorer import answers, export
from causerie.server.explorer.comparison import Side
from causerie.server.explorer.filters import Filter, Order
from causerie.server.explorer.marks import MAX_COMMENT, MAX_TAG, MAX_TAGS, Mark, Marks
from causerie.server.explorer.runs import Library
from causerie.server.explorer.tables import Tables
from causerie.server.room import Page, Room

API = "/explorer/api"
_NAME = Query(max_length=4000)
Name = Annotated[str | None, _NAME]
Number = Annotated[float | None, Query(allow_inf_nan=False)]
PageNumber = Annotated[int, Query(ge=0, le=1_000_000)]
_STYLES = ("/static/report.css", "explorer.css")


class Marked(BaseModel):
    """A mark for a turn of a run."""

    run: str
    dialogue: str
    system: str = ""
    turn: int = Field(-1, ge=-1, lt=1 << 62)
    tags: list[Annotated[str, Field(max_length=MAX_TAG)]] = Field([], max_length=MAX_TAGS)
    comment: str = Field("", max_length=MAX_COMMENT)


def explorer_room(paths: list[Path], marks: Path, cache: Path | None = None) -> Room:
    """Return the room for these files and folders of scores; `marks` stores tags and comments."""
    library = Library(paths, cache)
    library.runs()  # unreadable files are reported before the server runs
    tables, noted = Tables(), Marks(marks)

    def warm() -> None:
        """Compute the figures of the latest run before anybody asks for them."""
        with suppress(CauserieError):
            run = library.run(None)
            answers.overall(tables, run, run.main)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        warming = asyncio.get_running_loop().run_in_executor(None, warm)
        yield
        await asyncio.wait([warming])
        tables.close()
        noted.close()

    pages = {
        "": Page("Explorer", "overview.html", "overview.js", _STYLES),
        "replies": Page("Replies", "replies.html", "replies.js", _STYLES),
        "conversation": Page("Conversation", "conversation.html", "conversation.js", _STYLES),
        "compare": Page("Compare", "compare.html", "compare.js", _STYLES),
        "runs": Page("Runs", "runs.html", "runs.js", _STYLES),
    }
    router = routes(library, tables, noted)
    package = "causerie.server.explorer"
    return Room("explorer", "Explorer", package, pages, [router], lifespan=lifespan)


def wanted_of(
    system: Name = None,
    speaker: Name = None,
    dialogue: Name = None,
    text: Name = None,
    metric: Name = None,
    least: Number = None,
    most: Number = None,
    percentile_least: Number = None,
    percentile_most: Number = None,
    unscored: Name = None,
    tag: Name = None,
    order: Order = "given",
) -> Filter:
    """Return the filter encoded in an address."""
    return Filter(**locals())


Wanted = Annotated[Filter, Depends(wanted_of)]


def routes(library: Library, tables: Tables, marks: Marks) -> APIRouter:
    """Return the explorer's API; threads answer requests, and DuckDB does the work."""
    router = APIRouter(tags=["explorer"])

    @router.get("/explorer/static/drawings.js", include_in_schema=False)
    def drawings() -> Response:
        """The drawings of written pages."""
        return Response(part("causerie.render", "drawings.js"), media_type="text/javascript")

    @router.get(f"{API}/runs")
    def runs(metric: Name = None) -> dict[str, Any]:
        """All runs, latest first, with one column's mean in each."""
        return answers.history(tables, library, metric)

    @router.get(f"{API}/overview")
    def overall(run: Name = None, metric: Name = None) -> dict[str, Any]:
        """The first screen: sentences, figures of every system, one column in detail."""
        chosen = library.run(run)
        return answers.overall(tables, chosen, chosen.column(metric))

    @router.get(f"{API}/choices")
    def choices(run: Name = None, metric: Name = None) -> dict[str, Any]:
        """The values that a filter can choose from."""
        chosen = library.run(run)
        return answers.choices(tables, chosen, chosen.column(metric), marks)

    @router.get(f"{API}/replies")
    def replies(wanted: Wanted, run: Name = None, page: PageNumber = 0) -> dict[str, Any]:
        """A page of the replies that a filter finds."""
        return answers.listed(tables, library.run(run), wanted, page, marks)

    @router.get(f"{API}/conversation")
    def conversation(
        dialogue: Annotated[str, _NAME], run: Name = None, file: Name = None, system: Name = None
    ) -> dict[str, Any]:
        """A conversation with all scores of its turns."""
        return answers.talk(tables, library.run(run), dialogue, file, system, marks)

    @router.get(f"{API}/compare")
    def compare(
        a: Name = None,
        b: Name = None,
        system_a: Name = None,
        system_b: Name = None,
        metric: Name = None,
        order: Literal["most", "down", "up"] = "most",
        page: PageNumber = 0,
    ) -> dict[str, Any]:
        """Two runs, or two systems, and the replies that changed most."""
        first, second = Side(library.run(a), system_a), Side(library.run(b), system_b)
        scores = first.run.column(metric)
        return answers.versus(tables, first, second, scores, order, page)

    @router.get(f"{API}/about")
    def about(run: Name = None) -> dict[str, Any]:
        """The metadata of a run's table."""
        chosen = library.run(run)
        return {"path": str(chosen.path), **answers.plain_about(chosen)}

    @router.put(f"{API}/marks")
    def mark(given: Marked) -> dict[str, Any]:
        """Store tags and a comment for a turn; without either, delete its mark."""
        run = library.run(given.run)
        key = (given.dialogue, given.system, given.turn)
        kept = marks.set(run.name, key, Mark(tuple(given.tags), given.comment))
        return {"tags": kept.tags, "comment": kept.comment}

    @router.get(
        f"{API}/export",
        response_class=Response,
        responses={200: {"description": "JSON lines.", "content": {"application/jsonl": {}}}},
    )
    def exported(
        wanted: Wanted, run: Name = None, what: export.What = "replies"
    ) -> StreamingResponse:
        """The replies that a filter finds, as JSON lines."""
        chosen = library.run(run)
        export.check(chosen)
        marked = marks.keys(chosen.name, wanted.tag) if wanted.tag is not None else ()
        wanted.where(chosen, marked)  # raises for an invalid filter before the answer begins
        lines: Iterator[str] = export.lines(tables, chosen, wanted, what, marks, marked)
        return StreamingResponse(
            lines,
            media_type="application/jsonl",
            headers={"Content-Disposition": f'attachment; filename="{what}.jsonl"'},
        )

    return router
