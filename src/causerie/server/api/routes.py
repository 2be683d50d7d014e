"""The routes of the API except those of jobs: each validates, queues, and waits with the client."""

from __future__ import annotations

import asyncio
from threading import Event

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, Response

from causerie.metrics.base import Level
from causerie.scoring import Plan
from causerie.server.answers import Json, failures
from causerie.server.api import models
from causerie.server.api.service import Asked
from causerie.server.api.state import Api
from causerie.server.api.waiting import awaited, refusals

_BUSY = failures(
    s429="The server is too busy: try again after `Retry-After` seconds.",
    s503="The server is stopping.",
    s504="The request took too long.",
)
_LEVELS: tuple[Level, ...] = ("turn", "dialogue")


def score_router(api: Api) -> APIRouter:
    """Return the routes for scores on request."""
    router = APIRouter(prefix="/v1", tags=["scores"])
    offer, batcher = api.offer, api.offer.batcher

    @router.post("/score", response_model=models.ScoreAnswer, responses=_BUSY)
    async def score(wanted: models.ScoreRequest, request: Request) -> Response:
        """Score conversations; the numbers are those of `causerie score`."""
        asked = await run_in_threadpool(Asked, offer, wanted, batcher.limit)
        with refusals(api):
            work = asyncio.wrap_future(batcher.submit(asked.kind, asked.records))
            parts = await awaited(request, work, api.timeout)
        return await run_in_threadpool(lambda: Json(asked.answer(parts)))

    @router.post("/compare", response_model=models.CompareAnswer, responses=_BUSY)
    async def compare(wanted: models.CompareRequest, request: Request) -> Response:
        """Whether b is better than a, and by how much: differences, intervals, p-values."""
        stop = Event()
        try:
            with refusals(api):
                work = asyncio.ensure_future(api.compared(wanted, stop))
                return Json(await awaited(request, work, api.timeout))
        finally:
            stop.set()

    @router.get("/metrics")
    def metrics() -> models.MetricsAnswer:
        """The metrics this server offers, and the meaning of their columns."""
        plans = {level: offer.plan_of(None, level) for level in _LEVELS}
        about = [
            models.MetricAbout(
                alias=alias,
                metric=metric.name,
                summary=metric.summary,
                needs=sorted(metric.needs),
                columns={level: _columns(plan, alias) for level, plan in plans.items()},
            )
            for alias, metric in offer.plan.metrics.items()
        ]
        return models.MetricsAnswer(metrics=about, signature=offer.plan.signature)

    @router.post("/plan")
    def plan(wanted: models.PlanRequest) -> models.PlanAnswer:
        """What a request would compute, without computing it."""
        found = offer.plan_of(wanted.metrics, wanted.level, wanted.speaker)
        planned = [
            models.PlannedMetric(
                alias=alias, drawing=metric.drawing, columns=_columns(found, alias)
            )
            for alias, metric in found.metrics.items()
        ]
        return models.PlanAnswer(metrics=planned, signature=found.signature)

    return router


def state_router(api: Api) -> APIRouter:
    """Return the routes for monitoring."""
    router = APIRouter(tags=["state"])

    @router.get("/readyz", responses={503: {"model": models.Ready, "description": "Not ready."}})
    def readyz(response: Response) -> models.Ready:
        """Whether the networks are loaded."""
        ready = api.readiness()
        response.status_code = 200 if ready.ready else 503
        return ready

    @router.get("/metrics", response_class=PlainTextResponse)
    def counted() -> str:
        """Monitoring data for Prometheus."""
        return api.counts.text()

    return router


def _columns(plan: Plan, alias: str) -> list[models.ColumnAbout]:
    return [
        models.ColumnAbout(
            column=name,
            help=column.help,
            better=column.better,
            range=column.range,
            unit=column.unit,
            sentinel=column.sentinel,
            calibrated=column.calibrated,
            limit=column.limit,
        )
        for name, column in plan.columns_of(alias).items()
    ]
