"""The state of the API while the server runs: the queue, the jobs, and the counters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from causerie.bench.compare import compare_responses
from causerie.bench.pairing import responses_of
from causerie.io.jsontext import plain
from causerie.scoring import Plan
from causerie.server.api.batching import FullError
from causerie.server.api.counts import Counts
from causerie.server.api.jobs import Jobs
from causerie.server.api.models import CompareRequest, Ready
from causerie.server.api.service import Offer, QueuedScorer, check_size, records_in
from causerie.server.safety import Scope

COMPARISONS = 2
"""Number of comparisons at a time: each has its own thread for the statistics."""
COMPARISONS_WAIT = 4
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
MOST_SKIPPED = 100
"""Most bad records that a comparison reports."""


class Api:
    """The state behind the routes."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        limit: int,
        timeout: float,
        load: bool,
        tell: Callable[[str], None],
    ) -> None:
        self.counts = Counts()
        self.offer = Offer(plan, self.counts.scored, limit)
        self.jobs = Jobs(folder / "jobs", self.offer)
        self.timeout = timeout
        self._load, self._tell = load, tell
        self._loading: Future[None] = Future()
        self._comparing = ThreadPoolExecutor(COMPARISONS, "comparing")
        self._comparisons = 0
        self.counts.gauges |= {
            "causerie_queue_items": (
                "Responses that wait to be scored.",
                lambda: {(): self.offer.batcher.waiting},
            ),
            "causerie_jobs": (
                "Jobs by status.",
                lambda: {(("status", s),): n for s, n in self.jobs.counts().items()},
            ),
            "causerie_ready": (
                "Whether the networks are loaded.",
                lambda: {(): self.readiness().ready},
            ),
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run queue and jobs while the application runs; finish accepted requests at the end."""
        self.jobs.start()
        self.offer.batcher.start()
        if self._load:
            Thread(target=self._open, name="loading", daemon=True).start()
        else:  # they are loaded by the first request that needs them
            self._loading.set_result(None)
        try:
            yield
        finally:
            self._close()  # no request is left that this could delay

    def readiness(self) -> Ready:
        """Return whether requests will be answered, and if not, why."""
        if not self.offer.batcher.is_alive:
            return Ready(ready=False, reason="the server is stopping")
        if not self._loading.done():
            return Ready(ready=False, reason="networks are being loaded")
        if self.broken:
            return Ready(ready=False, reason=str(self._loading.exception()))
        return Ready(ready=True)

    @property
    def broken(self) -> bool:
        """Whether the networks could not be loaded."""
        return self._loading.done() and self._loading.exception() is not None

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer by its route, because anybody can invent addresses and methods."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.counts.request(route, method, status, seconds)

    async def compared(self, wanted: CompareRequest, stop: Event) -> dict[str, Any]:
        """Return a comparison, computed in a thread of its own."""
        if self._comparisons >= COMPARISONS + COMPARISONS_WAIT:
            raise FullError(10)
        self._comparisons += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._comparing, self._compare, wanted, stop)
        finally:
            self._comparisons -= 1

    def _compare(self, wanted: CompareRequest, stop: Event) -> dict[str, Any]:
        plan = self.offer.plan_of(wanted.metrics, speaker=wanted.speaker)
        a, b = (
            responses_of(records_in(data, wanted.columns), name, wanted.speaker)
            for name, data in (("a", wanted.a), ("b", wanted.b))
        )
        check_size(len(a.items) + len(b.items), self.offer.batcher.limit)
        scorer = QueuedScorer(self.offer, plan, stop)
        found = compare_responses(a, b, scorer, confidence=wanted.confidence, seed=wanted.seed)
        skipped = {
            side.source: [
                {"record": bad.line, "reason": bad.reason} for bad in side.rejected[:MOST_SKIPPED]
            ]
            for side in (a, b)
        }
        answer = plain({"how": found.how, **found.to_json(), "skipped": skipped}, "comparison")
        assert isinstance(answer, dict)
        return answer

    def _open(self) -> None:
        try:
            self.offer.load()
            self._loading.set_result(None)
            self._tell("the networks are loaded")
        except Exception as error:
            self._loading.set_exception(error)
            self._tell(f"nothing can be scored: {error}")

    def _close(self) -> None:
        self.jobs.close()
        self.offer.batcher.close()
        self._comparing.shutdown()
