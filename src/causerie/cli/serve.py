"""`causerie serve`: the web application, by default only for this machine."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.errors import CauserieError

_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "duckdb")


@options.engine_options
@options.judge_options
def serve(
    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(
            metavar="[SCORES]...",
            help="Tables that `causerie score` wrote, or folders of them, to explore.",
            show_default=False,
        ),
    ] = None,
    metrics: options.Metrics = None,
    set_: options.SetOption = None,
    hypotheses: options.Hypotheses = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    open_: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    token_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="File with the token that requests need; created if it is missing."),
    ] = None,
    allow_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Additional host name of the server."),
    ] = None,
    annotate: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="PROJECT",
            help="Also open this annotation project, a file or a database; a token is needed then.",
        ),
    ] = None,
    state: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Folder for jobs, tags and comments [default: in the platform's state folder]."
        ),
    ] = None,
    queue: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of waiting responses; further ones are rejected."),
    ] = 2048,
    timeout: Annotated[
        float, typer.Option(min=1, help="Maximum seconds for a request for scores.")
    ] = 120,
    *,
    judge: Any,
    settings: Any,
) -> None:
    """Open causerie in the browser: explore scores, and score on request.

    Folders are watched: tables written to them appear without a restart.

    By default only this machine can connect; with another --host, only requests with the token.
    """
    check_installed()
    from causerie.cli.assignments import chosen_plan
    from causerie.cli.console import say
    from causerie.server.api import api_room
    from causerie.server.app import Config
    from causerie.server.room import Room
    from causerie.server.safety import new_token
    from causerie.server.serve import serve, state_folder, token_from

    plan = chosen_plan(metrics, set_, hypotheses, settings, judge=judge)
    folder = state or state_folder()
    scores = api_room(plan, folder, limit=queue, timeout=timeout, tell=say)
    rooms: tuple[Room, ...] = (scores,)
    if paths:
        from causerie.server.explorer.room import explorer_room

        rooms = (explorer_room(paths, folder / "marks.sqlite"), scores)
    token = token_from(token_file) if token_file else None
    if annotate:
        from causerie.annotation.store import Store
        from causerie.server.annotate import annotation_room

        store = Store.open(annotate)
        rooms = (*rooms, annotation_room(store, store.project()))
        token = token or new_token()  # everybody has a link, so the owner has one, too
    config = Config(rooms, host, port, token, tuple(allow_host or ()))

    def ready(address: str) -> None:
        say(f"causerie is at {address}" + (f", the token in {token_file}" if token_file else ""))
        if annotate:
            typer.echo(f"{address}/enter#{token}")
            sys.stdout.flush()
        say("stop it with Ctrl-C")
        if open_:
            import webbrowser

            webbrowser.open(f"{address}/enter#{token}" if token else address)

    serve(config, ready)


def check_installed() -> None:
    """Raise an error if the extra packages of the server are missing."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise CauserieError(
            f"the server needs {', '.join(missing)}: run `pip install 'causerie[server]'`"
        )
