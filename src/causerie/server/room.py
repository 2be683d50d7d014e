"""A room of the web application: its routes, pages and files, and who may enter it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from fastapi import APIRouter

from causerie.server.safety import OWNER, Identity, Observe

Identify: TypeAlias = Callable[[str], "Identity | None"]
"""A function from a token to its holder's identity; None if it is not valid."""


@dataclass(frozen=True)
class Page:
    """A page of a room: the content of `<main>`, its script and its styles, all room files."""

    title: str
    body: str
    """File with the HTML of the page, which contains no foreign text."""
    script: str | None = None
    """File of an ES module that fills the page in."""
    styles: Sequence[str] = ()
    """Style files, or absolute paths of shared ones such as `/static/report.css`."""
    roles: frozenset[str] | None = None
    """Roles that may see the page; None for all that the room admits."""


@dataclass(frozen=True)
class Room:
    """One part of the application; all of it is served under `/NAME/`."""

    name: str
    """Name in addresses, such as `explorer`."""
    title: str
    """Title in the navigation."""
    package: str
    """Package whose folder `static` has the room's pages and files."""
    pages: Mapping[str, Page] = field(default_factory=dict)
    """Pages by path below `/NAME/`; without the first page, `""`, the room is not in the
    navigation."""
    routers: Sequence[APIRouter] = ()
    """Routers, with full paths."""
    prefixes: Sequence[str] = ()
    """Paths outside `/NAME/` that also belong to the room, such as `/v1/`."""
    roles: frozenset[str] = frozenset({OWNER})
    """Roles that may enter; the owner always may."""
    identify: Identify | None = None
    """Identifies the tokens that the room itself has issued."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Largest request in bytes by path, where it differs from the general limit."""
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Context that is open while the application runs."""
    observe: Observe | None = None
    """Called for every answer of any room."""

    @property
    def home(self) -> str:
        """The path of the room's first page."""
        return f"/{self.name}/"
