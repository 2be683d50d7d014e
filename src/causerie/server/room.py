"""What a room of the web application is: routes, pages, files, and whom it lets in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from fastapi import APIRouter

from causerie.server.safety import OWNER, Identity, Observe

Identify: TypeAlias = Callable[[str], "Identity | None"]
"""Whose token this is; None if it is nobody's (any more)."""


@dataclass(frozen=True)
class Page:
    """A page of a room: the inside of `<main>`, and what it needs. All files are of the room."""

    title: str
    body: str
    """File with the HTML of the page, without anything from outside in it."""
    script: str | None = None
    """File of an ES module, which fills the page with text."""
    styles: Sequence[str] = ()
    """Files, or absolute paths of shared ones such as `/static/report.css`."""
    roles: frozenset[str] | None = None
    """Who may see it, where not all that the room lets in may."""


@dataclass(frozen=True)
class Room:
    """One part of the application; everything in it lives under `/NAME/`."""

    name: str
    """In addresses, such as `explorer`."""
    title: str
    """In the navigation."""
    package: str
    """Whose folder `static` has the room's pages and files."""
    pages: Mapping[str, Page] = field(default_factory=dict)
    """By path under `/NAME/`; the first one is `""`, and its absence keeps the room out of the
    navigation."""
    routers: Sequence[APIRouter] = ()
    """Routes, with their whole paths."""
    prefixes: Sequence[str] = ()
    """Paths outside `/NAME/` that belong to the room, too, such as `/v1/`."""
    roles: frozenset[str] = frozenset({OWNER})
    """Who is let in; the owner always is."""
    identify: Identify | None = None
    """Knows tokens that the room gave to people itself."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """By path: how many bytes a request may bring there, where not as many as elsewhere."""
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Open while the application runs."""
    observe: Observe | None = None
    """Hears of every answer, of whichever room."""

    @property
    def home(self) -> str:
        """Where the room begins."""
        return f"/{self.name}/"
