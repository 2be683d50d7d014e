"""Running the application: a socket, its address, and an orderly shutdown."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from platformdirs import user_state_dir

from causerie.errors import CauserieError
from causerie.server.app import Config, create_app
from causerie.server.safety import new_token

GRACE = 150
"""Seconds that open requests may take after the server is told to stop; a second signal ends them
at once."""


class Server(uvicorn.Server):
    """Reports its address once it accepts requests."""

    def __init__(self, config: Config, ready: Callable[[str], None]) -> None:
        self._app = create_app(config)
        super().__init__(
            uvicorn.Config(
                self._app,
                lifespan="off",  # opened in `serve`, so that errors of a room are reported as such
                log_level="warning",
                access_log=False,  # addresses may name conversations
                server_header=False,
                proxy_headers=False,  # anybody could forge them
                timeout_graceful_shutdown=GRACE,
            )
        )
        self._socket, self._ready = _listen(config.host, config.port), ready
        host = f"[{config.host}]" if ":" in config.host else config.host
        self.address = f"http://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the rooms, serve, and close them when all requests are answered."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready(self.address)

    def run_here(self) -> None:
        """Serve until a signal, or until `should_exit` is set."""
        with self._socket:
            self.run([self._socket])


def serve(config: Config, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve until a signal ends it; open requests are answered first.

    `ready` is called with the address once the server accepts requests.
    """
    Server(config, ready).run_here()


def state_folder() -> Path:
    """Return the default folder for what a server keeps between runs."""
    return Path(user_state_dir("causerie", appauthor=False)) / "server"


def token_from(path: Path) -> str:
    """Return the token in a file that only its owner can read; create it if it does not exist."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_token() + "\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise CauserieError(
            f"{path} cannot be written ({error.strerror}): name another --token-file"
        ) from error
    return path.read_text("utf-8").strip()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CauserieError(
            f"{host}:{port} cannot be used ({error.strerror}): choose another --port, or 0 for a "
            "free one"
        ) from error
