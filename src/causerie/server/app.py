"""The web application: rooms behind one guard, with one design.

How a room plugs in. A room is a package beside this module, say `causerie.server.explorer`, with
a folder `static` and a function that returns a `Room` (`causerie.server.room`):

- `pages`: `{"": Page("Explorer", "index.html", "explorer.js", ["explorer.css"])}` gives
  `/explorer/`: the shell with the navigation around the HTML of the file, and a place in it;
- files in `static` are at `/explorer/static/`; modules import `/static/dom.js` and the like;
- `routers`: FastAPI routers with whole paths, such as `/explorer/turns`; `Depends(who)` is the
  `Identity` of the caller, `Depends(needs("lead"))` lets only leads and the owner go on;
- `roles`: whom the guard lets into `/explorer/`, by default only the owner; `identify` makes an
  identity of a token that the room gave somebody, who enters by the link `/enter#TOKEN`;
- `lifespan`: what is to be open while the application runs, as a context manager;
- errors: raise `CauserieError` or `HTTPException`; the answer is `{"error": "One sentence."}`.

`create_app(Config(rooms=(explorer_room(...), ...)))` puts them together; `serve` runs them.
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
"""Styles of written pages that these pages use, too; each is called `page.css` in its package."""


@dataclass(frozen=True)
class Config:
    """What application to make."""

    rooms: tuple[Room, ...]
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = field(default=None, repr=False)
    """The owner's; without one, whoever can reach the server is the owner."""
    hosts: tuple[str, ...] = ()
    """Further names of the server, as browsers will call it."""
    max_body: int = 16 << 20
    rate: float = 200.0

    def __post_init__(self) -> None:
        if self.token is None and not (is_loopback(self.host) and not self.hosts):
            raise CauserieError(
                "other machines can reach the server by --host or --allow-host, so a token is "
                "needed: add --token-file FILE, or leave them out"
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise CauserieError(f"a token has at least {SHORTEST_TOKEN} characters: make it longer")

    def rules(self) -> Rules:
        """What the guard is to go by."""
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
    """A secret that somebody was given."""

    token: str = Field(max_length=200)


class Home(BaseModel):
    """Where to go."""

    home: str


def create_app(config: Config) -> FastAPI:
    """The application with these rooms."""

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
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        default_response_class=Json,
        responses=failures(s4XX="What the caller can mend."),
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
    """Routes that belong to no room."""

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
        """Whether the server runs."""
        return {"status": "ok"}

    @app.get("/enter", include_in_schema=False)
    def enter(request: Request) -> Response:
        """The page behind a secret link: its script takes the token out of the address."""
        page = Page("Enter", "enter.html", "enter.js")
        return HTMLResponse(_shell(page, "causerie.server", "/static/", "", "Enter"))

    @app.post("/session", include_in_schema=False)
    def begin(token: Token, request: Request, response: Response) -> Home:
        """Keep a token in a cookie that no script can read."""
        identity = rules.identity_of(token.token)
        if identity is None:
            raise HTTPException(401, "this link does not work (any more): ask for another one")
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
            raise HTTPException(403, "this is not for you")
        navigation = _navigation(config.rooms, room, identity)
        files = f"{room.home}static/"
        return HTMLResponse(_shell(page, room.package, files, navigation, room.title))


def _shell(page: Page, package: str, files: str, navigation: str, title: str) -> str:
    """The page with what all pages have around it; everything in it is written by us."""
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
    """The rooms with pages that somebody may enter."""
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
