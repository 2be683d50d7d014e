"""Jobs over HTTP: submit a file, check its progress, fetch the table, remove it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, Response
from starlette.requests import ClientDisconnect

from causerie.errors import CauserieError
from causerie.io import parse_columns
from causerie.metrics.base import Level
from causerie.scoring import Layout
from causerie.server.answers import failures
from causerie.server.api.jobs import base_of
from causerie.server.api.models import Job, Jobs
from causerie.server.api.state import Api

PATH = "/v1/jobs"
_FILE = {
    "requestBody": {
        "required": True,
        "description": "The file, in any format of `causerie score`.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_MISSING = failures(s404="No such job exists.")
_JobId = Annotated[str, InPath(pattern="^[0-9a-f]{24}$")]
_Short = Query(min_length=1, max_length=200)
_Format = Literal["jsonl", "json", "csv", "tsv", "parquet", "text"]
_Columns = Query(
    max_length=2000,
    description="The file's own names of fields, where they differ, as in "
    "`context=history,response=reply`.",
)


def job_router(api: Api) -> APIRouter:
    """Return all routes of jobs."""
    router = APIRouter(prefix=PATH, tags=["jobs"])
    jobs = api.jobs

    def found(job_id: str) -> Job:
        job = jobs.get(job_id)
        if job is None:
            raise HTTPException(404, "this job does not exist, or has been removed")
        return job

    @router.post("", status_code=202, openapi_extra=_FILE)
    async def submit(
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=1000)] = "conversations.jsonl",
        metrics: Annotated[
            str | None, Query(max_length=5000, description="Aliases, separated by commas.")
        ] = None,
        level: Level = "turn",
        speaker: Annotated[str | None, _Short] = None,
        percentiles: bool = False,
        explain: bool = False,
        text: bool = True,
        input_format: _Format | None = None,
        columns: Annotated[str | None, _Columns] = None,
        out: Literal["jsonl", "csv", "tsv", "parquet"] = "jsonl",
    ) -> Job:
        """Have a file scored in the background; once this answers, the job is safely stored."""
        named = [one.strip() for one in metrics.split(",") if one.strip()] if metrics else None
        plan = api.offer.plan_of(named, level, speaker)
        Layout(plan, percentiles, explain, text)  # raises if the options do not fit together
        named_columns = parse_columns(columns) if columns else {}
        base = base_of(name)
        folder = await run_in_threadpool(jobs.place)
        try:
            size = await _received(request, folder / "input" / base)
            job = Job(
                id=folder.name,
                name=name,
                status="queued",
                metrics=list(plan.metrics),
                level=level,
                speaker=speaker,
                percentiles=percentiles,
                explain=explain,
                text=text,
                input_format=input_format,
                columns=named_columns,
                out=out,
                created=time.time(),
                size=size,
            )
            return await run_in_threadpool(jobs.add, job)
        finally:
            jobs.tidy(folder)

    @router.get("")
    def every() -> Jobs:
        """All jobs, newest first."""
        return Jobs(jobs=jobs.all())

    @router.get("/{job_id}", responses=_MISSING)
    def one(job_id: _JobId) -> Job:
        """The progress of a job."""
        return found(job_id)

    @router.get(
        "/{job_id}/result",
        response_class=Response,
        responses={
            200: {"description": "The table.", "content": {"application/octet-stream": {}}},
            **_MISSING,
            **failures(s409="The job is not done."),
        },
    )
    def result(job_id: _JobId) -> Response:
        """The rows, as `causerie score --out` writes them."""
        job = found(job_id)
        if job.status != "done":
            raise HTTPException(409, job.error or f"the job is {job.status}: try again later")
        name = f"{Path(base_of(job.name)).stem}.scores.{job.out}"
        kind = "application/octet-stream"
        return FileResponse(jobs.result_of(job), media_type=kind, filename=name)

    @router.delete("/{job_id}", status_code=204, responses=_MISSING)
    def remove(job_id: _JobId) -> None:
        """Stop a job and delete all its files."""
        found(job_id)
        jobs.remove(job_id)

    return router


async def _received(request: Request, path: Path) -> int:
    """Write the request's body to a new file and sync it to disk; return its size."""
    try:
        with path.open("xb") as file:
            async for chunk in request.stream():
                await run_in_threadpool(file.write, chunk)
            await run_in_threadpool(file.flush)
            await run_in_threadpool(os.fsync, file.fileno())
            size = file.tell()
    except ClientDisconnect:
        raise HTTPException(400, "the file arrived incomplete: send it again") from None
    except OSError as error:
        raise HTTPException(507, f"the file cannot be stored ({error.strerror})") from error
    if not size:
        raise CauserieError("the file is empty: send it as the body of the request")
    return size
