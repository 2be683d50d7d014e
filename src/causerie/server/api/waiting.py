"""Waiting on behalf of a client: until it leaves or time is up, and never for too many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import HTTPException, Request

from causerie.errors import CauserieError
from causerie.server.api.batching import ClosedError, FullError
from causerie.server.api.state import Api

T = TypeVar("T")

CLIENT_LEFT = 499
"""A status that only the counters see."""


async def awaited(request: Request, work: asyncio.Future[T], timeout: float) -> T:
    """Return the result of the work, which is cancelled if the client leaves or time is up.

    The body of the request must have been read before.
    """
    gone = asyncio.create_task(_left(request))
    try:
        both: set[asyncio.Future[Any]] = {work, gone}
        await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        if gone.done():
            raise HTTPException(CLIENT_LEFT, "the client has left")
        raise HTTPException(
            504,
            f"this took longer than {timeout:g} s: send less at a time, or a file to /v1/jobs",
        )
    finally:
        gone.cancel()
        work.cancel()


@contextmanager
def refusals(api: Api) -> Iterator[None]:
    """Turn refusals into statuses, with the time to retry; without its networks a server is 503."""
    try:
        yield
    except FullError as full:
        raise HTTPException(
            429,
            f"the server is too busy: try again in {full.seconds} s",
            {"Retry-After": str(full.seconds)},
        ) from None
    except CauserieError as error:
        if api.broken:
            raise HTTPException(503, str(error)) from error
        raise
    except ClosedError:
        raise HTTPException(503, "the server is stopping", {"Retry-After": "5"}) from None


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
