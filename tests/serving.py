"""A real server on this machine, in a thread of the tests, and requests to it as they are."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from causerie.dialogue import Exchange
from causerie.engines import Engines
from causerie.metrics.base import Metric, Score, Scores
from causerie.server.app import Config
from causerie.server.serve import Server


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Site:
    """A server that runs."""

    address: str
    server: Server

    @property
    def port(self) -> int:
        return int(urlsplit(self.address).port or 0)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request as it is: bytes, or anything else as JSON."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if content is not None else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, content, {**given, **(headers or {})})
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())
        finally:
            connection.close()


@contextmanager
def serving(config: Config) -> Iterator[Site]:
    """The application of a config (with port 0) while the block runs."""
    ready = Event()
    server = Server(config, lambda address: ready.set())
    thread = Thread(target=server.run_here)
    thread.start()
    try:
        assert ready.wait(180), "the server did not start"
        yield Site(server.address, server)
    finally:
        server.should_exit = True
        thread.join(180)
        assert not thread.is_alive()


@dataclass(frozen=True)
class Slow(Metric):
    """The length of a response, once a gate is open."""

    name = "slow"
    summary = "waits"

    def score_exchanges(
        self, exchanges: Sequence[Exchange], engines: Engines, *, explain: bool = False
    ) -> list[Scores]:
        GATE.begun.set()
        assert GATE.open.wait(180)
        return [(Score.of(float(len(e.response.text))),) for e in exchanges]


class Gate:
    def __init__(self) -> None:
        self.open, self.begun = Event(), Event()
        self.open.set()


GATE = Gate()


@contextmanager
def closed() -> Iterator[None]:
    GATE.begun.clear()
    GATE.open.clear()
    try:
        yield
    finally:
        GATE.open.set()
