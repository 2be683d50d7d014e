"""The guard: every request passes through it before any room sees it.

It refuses foreign Host and Origin headers (so no other web site can reach the server through
somebody's browser), requests that are too large or too frequent, and callers without access; and
it adds the same security headers to every response. Tokens come in the `Authorization` header or
in a cookie, never in an address, so no log contains them.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias

from fastapi import HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders

from causerie.server.answers import Json

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Observe: TypeAlias = Callable[[Scope, int, float], None]
"""Called for every answer with the request's scope, the status, and seconds until it began."""

OWNER = "owner"
"""The role of whoever started the server, which permits everything."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
SHORTEST_TOKEN = 20
"""Fewest characters of a token; shorter ones could be guessed."""
STALLED = 30.0
"""Most seconds to wait for the next part of a request."""


@dataclass(frozen=True)
class Identity:
    """Somebody who makes requests."""

    name: str
    roles: frozenset[str]
    home: str = "/"
    """Path that they are taken to when they enter."""

    def may(self, roles: frozenset[str]) -> bool:
        return OWNER in self.roles or not roles.isdisjoint(self.roles)


THE_OWNER = Identity("owner", frozenset({OWNER}))


def who(request: Request) -> Identity:
    """Return who makes this request (a dependency for routes)."""
    identity: Identity = request.scope["identity"]
    return identity


def needs(*roles: str) -> Callable[[Request], Identity]:
    """Return a dependency that admits only these roles and the owner: `Depends(needs("lead"))`."""

    def allowed(request: Request) -> Identity:
        identity = who(request)
        if not identity.may(frozenset(roles)):
            raise HTTPException(403, "you do not have access to this")
        return identity

    return allowed


def new_token() -> str:
    """Return a new secret for one person."""
    return secrets.token_urlsafe(24)


def digest_of(token: str) -> str:
    """Return the digest to store for a token, which is useless to whoever reads it."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token(given: str, digest: str) -> bool:
    """Return whether the token has this digest, in constant time."""
    return hmac.compare_digest(digest_of(given), digest)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Rules:
    """The rules of the guard."""

    hosts: frozenset[str] = frozenset()
    """Names of the server, besides the address that a request was sent to."""
    owner: str | None = None
    """Digest of the owner's token; None makes everybody who can reach the server the owner."""
    identify: Sequence[Callable[[str], Identity | None]] = ()
    """Functions that identify the holders of other tokens."""
    rooms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles that may use paths with a prefix; all other paths are the owner's."""
    public: frozenset[str] = frozenset()
    """Paths, or prefixes if they end with a slash, that need no token."""
    max_body: int = 16 << 20
    limits: Mapping[str, int] = field(default_factory=dict)
    """Largest body in bytes by path, where it differs from `max_body`."""
    rate: float = 200.0
    """Requests per second and client, and twice as many in a burst; the owner has no limit."""
    observe: Sequence[Observe] = ()

    def identity_of(self, token: str) -> Identity | None:
        """Return the holder of a token, or None if it is not valid."""
        if self.owner is not None and is_token(token, self.owner):
            return THE_OWNER
        found = [identify(token) for identify in self.identify]
        return next((identity for identity in found if identity is not None), None)

    def is_public(self, path: str) -> bool:
        return any(path.startswith(p) if p.endswith("/") else path == p for p in self.public)

    def check(self, path: str, identity: Identity | None) -> None:
        """Raise 401 or 403 if somebody has no access to a path."""
        if identity is None:
            raise HTTPException(
                401,
                "a token is needed: open the link that you were given, or send the header "
                "Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        roles = [roles for prefix, roles in self.rooms.items() if path.startswith(prefix)]
        if path != "/" and not identity.may(roles[0] if roles else frozenset()):
            raise HTTPException(403, "you do not have access to this")


class Guard:
    """ASGI middleware that applies the rules to every request and response."""

    def __init__(self, app: Any, rules: Rules) -> None:
        self._app, self._rules = app, rules
        self._requests = Buckets(rules.rate, 2 * rules.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets are not supported
            return
        begun, start = False, time.perf_counter()

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                for observe in self._rules.observe:
                    observe(scope, message["status"], time.perf_counter() - start)
            await send(message)

        try:
            limit = self._admit(scope)
        except HTTPException as refused:
            await _answer(guarded, scope, refused)
            return
        try:
            await self._app(scope, _limited(receive, limit), guarded)
        except Exception:
            if not begun:
                await _answer(guarded, scope, HTTPException(500, "an internal error occurred"))
            raise  # for the server's log

    def _admit(self, scope: Scope) -> int:
        """Admit a request and return its size limit in bytes, or raise its refusal."""
        rules, headers, path = self._rules, Headers(scope=scope), scope["path"]
        host = headers.get("host", "").lower()
        if not self._is_ours(host, scope):
            raise HTTPException(
                421,
                "this server has a different name: restart it with --allow-host NAME",
            )
        if scope["method"] not in SAFE_METHODS:
            _check_origin(headers, host)
        token = token_in(headers, host)
        if token is not None:
            identity = rules.identity_of(token)
        else:
            identity = THE_OWNER if rules.owner is None else None
        scope["identity"] = identity
        if identity is None or OWNER not in identity.roles:
            self._requests.take(identity.name if identity else (scope.get("client") or ("",))[0])
        if not rules.is_public(path):
            rules.check(path, identity)
        limit = rules.limits.get(path, rules.max_body)
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > limit:
            raise too_large(limit)
        return limit

    def _is_ours(self, host: str, scope: Scope) -> bool:
        """Return whether a Host header names the called address, or another name of the server."""
        name = name_and_port(host)[0]
        server = (scope.get("server") or ("",))[0] or ""
        return (
            name in self._rules.hosts
            or (is_loopback(server) and is_loopback(name))
            or name == server != ""
        )


class Buckets:
    """Rate limits: each client may do something `rate` times per second, `burst` times at once."""

    MOST = 10_000
    """Most clients that are remembered."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Remaining actions of each client, and the time of that count."""

    def check(self, client: str) -> None:
        """Raise 429 if the client has to wait."""
        left = self._now(client)
        if left < 1:
            wait = max(1, round((1 - left) / self._rate))
            raise HTTPException(
                429, f"too many requests: wait {wait} s", {"Retry-After": str(wait)}
            )

    def take(self, client: str) -> None:
        """Count an action; raise 429 if the client has to wait."""
        self.check(client)
        self._left[client] = (self._now(client) - 1, self._clock())
        self._left.move_to_end(client)
        if len(self._left) > self.MOST:
            self._left.popitem(last=False)

    def _now(self, client: str) -> float:
        left, then = self._left.get(client, (self._burst, 0.0))
        return min(self._burst, left + self._rate * (self._clock() - then))


def cookie_name(host: str) -> str:
    """Return the cookie's name, which differs by port as browsers share cookies between ports."""
    port = name_and_port(host)[1]
    return f"causerie-{port}" if port else "causerie"


def token_in(headers: Headers, host: str) -> str | None:
    """Return the token in a request, or None."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    found = cookies.get(cookie_name(host))
    return found.value if found and found.value else None


def too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"a request has at most {limit:,} bytes here: send less at once")


def _check_origin(headers: Headers, host: str) -> None:
    """Refuse what a page of another site sends through somebody's browser.

    Browsers state the origin of a request, and no page can prevent that; other programs do not.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    foreign = origin is not None and origin.lower().partition("://")[2] != host
    if foreign or site not in (None, "same-origin", "none"):
        raise HTTPException(403, "requests from pages of other sites are refused")


def name_and_port(host: str) -> tuple[str, str | None]:
    """Return the name and the port of a Host header; the name is empty if it is invalid."""
    found = _HOST.fullmatch(host)
    return (found[1].strip("[]").lower(), found[2]) if found else ("", None)


def _limited(receive: Receive, limit: int) -> Receive:
    """Wrap `receive` to raise an error if the body is longer than allowed, or stalls."""
    received, whole = 0, False

    async def limited() -> Message:
        nonlocal received, whole
        try:
            message = await (receive() if whole else asyncio.wait_for(receive(), STALLED))
        except asyncio.TimeoutError:
            raise HTTPException(
                408, "the rest of the request did not arrive: send it again"
            ) from None
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit)
        whole = whole or not message.get("more_body", False)
        return message

    return limited


async def _answer(send: Send, scope: Scope, refused: HTTPException) -> None:
    """Answer a refusal with its sentence; a page without a token redirects to the entrance."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    response: Response = Json({"error": refused.detail}, refused.status_code, refused.headers)
    if refused.status_code == 401 and scope["method"] == "GET" and wants_page:
        response = RedirectResponse("/enter", 303)
    await response(scope, _nothing, send)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
