"""A real endpoint that talks like OpenAI's, in a thread, and does whatever a test asks of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Reply:
    """A whole HTTP response."""

    content: object
    """JSON, or bytes as they are."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def completion(
    text: str | None, top: Mapping[str, float] | None = None, usage: object = (100, 1), n: int = 1
) -> Reply:
    """A chat completion; `top` has the log-probabilities of its first token's alternatives."""
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}}
    if top is not None:
        alternatives = [{"token": t, "logprob": p} for t, p in top.items()]
        choice["logprobs"] = {"content": [{"token": text, "top_logprobs": alternatives}]}
    content: dict[str, Any] = {"object": "chat.completion", "choices": [choice] * n}
    if isinstance(usage, tuple):
        content["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    elif usage is not None:
        content["usage"] = usage
    return Reply(content)


Answer = Callable[[int, dict[str, Any]], Reply]
"""From the number of a request, counted from 1, and its body."""


class ChatServer:
    """What was asked, and what is answered."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.released = Event()
        """Set when the test is over, so that whoever waits need not."""
        self._lock = Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.asked.append(body)
                    server.headers.append(dict(self.headers))
                    server.paths.append(self.path)
                    number = len(server.asked)
                reply = server.answer(number, body)
                content = reply.content
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                headers = {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(data)),
                    **reply.headers,
                }
                try:
                    self.send_response(reply.status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # whoever asked is gone
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def said(self, number: int) -> str:
        """The whole text of a request, counted from 0."""
        return "\n".join(message["content"] for message in self.asked[number]["messages"])

    def start(self) -> None:
        Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def serving(answer: Answer) -> Iterator[ChatServer]:
    server = ChatServer(answer)
    server.start()
    direct = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1")  # whatever the machine has
    try:
        with patch.dict(os.environ, direct):
            yield server
    finally:
        server.stop()
