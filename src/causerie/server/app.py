"""The web application: rooms behind one guard, with one design.

How a room plugs in. A room is a package beside this module, say `causerie.server.explorer`, with
a folder `static` and a function that returns a `Room` (`causerie.server.room`):

- `pages`: `{"": Page("Explorer", "index.html", "explorer.js", ["explorer.css"])}` serves
  `/explorer/`: the shared shell and navigation around the HTML of that file;
- files in `static` are served at `/explorer/static/`; modules import `/static/dom.js` and others;
- `routers`: FastAPI routers with full paths, such as `/explorer/turns`; `Depends(who)` is the
  `Identity` of the caller, `Depends(needs("lead"))` admits only leads and the owner;
- `roles`: who may enter `/explorer/`, by default only the owner; `identify` returns the identity
  of a token that the room has issued, whose holder enters by the link `/enter#TOKEN`;
- `lifespan`: a context manager that is open while the application runs;
- errors: raise `CauserieError` or `HTTPException`; the answer is `{"error": "One sentence."}`.

`create_app(Config(rooms=(explorer_room(...), ...)))` assembles the application; `serve` runs it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from causerie._version import __version__
from causerie.errors import CauserieError
from causerie.server.answers import Json, failures
from causerie.server.room import Page, Room
from causerie.server.safety import (
    SHORTEST_TOKEN,
    Guard,
    Identity,
    Rules,
    cookie_name,
    digest_of,
    is_loopback,
    who,
)

PUBLIC = ("/static/", "/enter", "/session", "/healthz", "/readyz")
_SHARED = {"page.css": "causerie.render", "report.css": "causerie.report"}
"""Styles of written pages that are used here, too; each is called `page.css` in its package."""


@dataclass(frozen=True)
class Config:
    """The rooms of an application, its address, and its limits."""

    rooms: tuple[Room, ...]
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = field(default=None, repr=False)
    """The owner's token; without one, everybody who can reach the server is the owner."""
    hosts: tuple[str, ...] = ()
    """Further names of the server in browsers."""
    max_body: int = 16 << 20
    rate: float = 200.0

    def __post_init__(self) -> None:
        if self.token is None and not (is_loopback(self.host) and not self.hosts):
            raise CauserieError(
                "--host or --allow-host lets other machines reach the server, so it needs a "
                "token: add --token-file FILE, or omit these options"
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise CauserieError(f"tokens need at least {SHORTEST_TOKEN} characters: make it longer")

    def rules(self) -> Rules:
        """Return the rules of the guard."""
        places = [(prefix, r) for r in self.rooms for prefix in (r.home, *r.prefixes)]
        return Rules(
            hosts=frozenset(host.lower() for host in self.hosts),
            owner=None if self.token is None else digest_of(self.token),
            identify=[room.identify for room in self.rooms if room.identify],
            rooms={prefix: room.roles for prefix, room in places},
            public=frozenset((*PUBLIC, *(f"{room.home}static/" for room in self.rooms))),
            max_body=self.max_body,
            limits={path: size for room in self.rooms for path, size in room.limits.items()},
            rate=self.rate,
            observe=[room.observe for room in self.rooms if room.observe],
        )


class Token(BaseModel):
    """A secret that a person was given."""

    token: str = Field(max_length=200)


class Home(BaseModel):
    """The path to go to."""

    home: str


def create_app(config: Config) -> FastAPI:
    """Return the application with these rooms."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for room in config.rooms:
                if room.lifespan:
                    await stack.enter_async_context(room.lifespan())
            yield

    app = FastAPI(
        title="causerie",
        version=__version__,
        description="Scores of open-domain conversations without reference answers.",
        docs_url=None,  # its pages load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        default_response_class=Json,
        responses=failures(s4XX="An error that the caller can correct."),
    )
    rules = config.rules()
    app.add_middleware(Guard, rules=rules)
    app.add_exception_handler(CauserieError, _failed)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    _add_common(app, config, rules)
    for room in config.rooms:
        for router in room.routers:
            app.include_router(router)
        for path, page in room.pages.items():
            _add_page(app, config, room, path, page)
        app.mount(f"{room.home}static", StaticFiles(directory=_folder(room.package)))
    app.mount("/static", StaticFiles(directory=_folder("causerie.server")))
    return app


def _add_common(app: FastAPI, config: Config, rules: Rules) -> None:
    """Add the routes that belong to no room."""

    @app.get("/", include_in_schema=False)
    def start(request: Request) -> Response:
        identity = who(request)
        home = identity.home
        if home == "/":
            homes = [r.home for r in config.rooms if "" in r.pages and identity.may(r.roles)]
            home = homes[0] if homes else "/enter"
        return RedirectResponse(home, 303)

    @app.get("/healthz", tags=["state"])
    async def healthz() -> dict[str, str]:
        """Whether the server is running."""
        return {"status": "ok"}

    @app.get("/enter", include_in_schema=False)
    def enter(request: Request) -> Response:
        """Return the page of secret links, whose script removes the token from the address."""
        page = Page("Enter", "enter.html", "enter.js")
        return HTMLResponse(_shell(page, "causerie.server", "/static/", "", "Enter"))

    @app.post("/session", include_in_schema=False)
    def begin(token: Token, request: Request, response: Response) -> Home:
        """Store a token in a cookie that scripts cannot read."""
        identity = rules.identity_of(token.token)
        if identity is None:
            raise HTTPException(401, "this link is invalid or has been revoked: ask for a new one")
        response.set_cookie(
            cookie_name(request.headers["host"]),
            token.token,
            max_age=90 * 24 * 3600,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return Home(home=identity.home)

    @app.delete("/session", include_in_schema=False)
    def end(request: Request, response: Response) -> Home:
        response.delete_cookie(cookie_name(request.headers["host"]))
        return Home(home="/enter")

    def shared(name: str, package: str) -> None:
        @app.get(f"/static/{name}", include_in_schema=False)
        def style() -> Response:
            return FileResponse(_file(package, "page.css"), media_type="text/css")

    for name, package in _SHARED.items():
        shared(name, package)


def _add_page(app: FastAPI, config: Config, room: Room, path: str, page: Page) -> None:
    @app.get(f"{room.home}{path}", include_in_schema=False, response_class=HTMLResponse)
    def show(request: Request) -> HTMLResponse:
        identity = who(request)
        if page.roles is not None and not identity.may(page.roles):
            raise HTTPException(403, "you do not have access to this")
        navigation = _navigation(config.rooms, room, identity)
        files = f"{room.home}static/"
        return HTMLResponse(_shell(page, room.package, files, navigation, room.title))


def _shell(page: Page, package: str, files: str, navigation: str, title: str) -> str:
    """Return a page within the shared shell; all of its HTML is our own."""
    style = '<link rel="stylesheet" href="{}">'
    links = [style.format(s if s.startswith("/") else files + s) for s in page.styles]
    script = f'<script type="module" src="{files}{page.script}"></script>' if page.script else ""
    return Template(_read("causerie.server", "shell.html")).substitute(
        title=escape(page.title if page.title == title else f"{page.title} · {title}"),
        links="\n".join(links),
        navigation=navigation,
        body=_read(package, page.body),
        script=script,
    )


def _navigation(rooms: tuple[Room, ...], here: Room, identity: Identity) -> str:
    """Return links to the rooms with pages that somebody may enter."""
    items = [
        f'<li><a href="{room.home}"{" aria-current=page" if room is here else ""}>'
        f"{escape(room.title)}</a></li>"
        for room in rooms
        if "" in room.pages and identity.may(room.roles)
    ]
    return f'<nav aria-label="Rooms"><ul>{"".join(items)}</ul></nav>'


def _folder(package: str) -> Path:
    return Path(str(resources.files(package))) / "static"


def _file(package: str, name: str) -> Path:
    return Path(str(resources.files(package))) / name


def _read(package: str, name: str) -> str:
    return (_folder(package) / name).read_text("utf-8")


def _failed(request: Request, error: Exception) -> Json:
    return Json({"error": str(error)}, 422)


def _refused(request: Request, error: Exception) -> Json:
    assert isinstance(error, StarletteHTTPException)
    return Json({"error": error.detail}, error.status_code, error.headers)


def _invalid(request: Request, error: Exception) -> Json:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return Json({"error": f"{place}: {first['msg']}"}, 422)
