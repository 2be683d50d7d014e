"""One request over HTTP, with nothing but the standard library."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from math import isfinite
from socket import gaierror
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

LARGEST = 4 << 20
"""Bytes of a response: no answer to a question is longer."""
_PART = 1 << 16


class NoResponse(Exception):  # noqa: N818 - it says what there is
    """Why there is none."""

    def __init__(self, why: str, *, lasting: bool = False, sent: bool = True) -> None:
        super().__init__(why)
        self.lasting = lasting
        """Whether another attempt is hardly of use."""
        self.sent = sent
        """Whether the request may have arrived."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str


class _NoRedirect(HTTPRedirectHandler):
    """A redirection is a response like any other: it would take the key elsewhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> Response:
    """Send a body, and read the whole response within about `timeout` seconds."""
    request = Request(url, body, dict(headers), method="POST")
    until = time.monotonic() + timeout
    try:
        try:
            reply: Any = build_opener(_NoRedirect).open(request, timeout=timeout)
        except HTTPError as error:
            reply = error
        with reply:
            parts, size = [], 0
            while part := reply.read1(_PART):
                parts.append(part)
                size += len(part)
                if size > LARGEST:
                    raise NoResponse("its response is too long")
                if time.monotonic() > until:
                    raise TimeoutError
            text = b"".join(parts).decode("utf-8", "replace")
            return Response(reply.status, {k.lower(): v for k, v in reply.headers.items()}, text)
    except URLError as error:
        reason = error.reason
        if isinstance(reason, TimeoutError):
            raise NoResponse(f"no response within {timeout:g} seconds") from None
        lasting = isinstance(reason, (gaierror, ssl.SSLError, ConnectionRefusedError))
        raise NoResponse(f"{reason}", lasting=lasting, sent=not lasting) from None
    except TimeoutError:
        raise NoResponse(f"no response within {timeout:g} seconds") from None
    except (OSError, HTTPException) as error:
        raise NoResponse(f"the connection broke ({type(error).__name__})") from None


def waiting_time(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After header, which may be a date; None if it says nothing useful."""
    given = headers.get("retry-after", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        try:
            date = parsedate_to_datetime(given)
        except (ValueError, TypeError):
            return None
        aware = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
        seconds = (aware - datetime.now(timezone.utc)).total_seconds()
    return max(0.0, seconds) if isfinite(seconds) else None
