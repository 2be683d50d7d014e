"""Where projects are kept: SQLite, or PostgreSQL for teams.

The log of events is append-only, which the database itself sees to. What `append` has returned is
on disk. A snapshot is of one moment, however many people work meanwhile.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from causerie.annotation.database import Database
from causerie.annotation.marks import Event, State, check, state_of
from causerie.annotation.project import (
    Assignment,
    Listed,
    NewAssignment,
    NewItem,
    Person,
    Role,
    Settings,
    Snapshot,
    reviewed,
)
from causerie.annotation.tables import assignments, items, log, people, projects
from causerie.annotation.tasks import Item
from causerie.annotation.tokens import digest, matches, new_secret, parse_token, token_of
from causerie.errors import CauserieError, RecordError
from causerie.io.records import text

_CHUNK = 500
"""Rows of one statement."""


class RefusedError(CauserieError):
    """Somebody may not do this; the sentence may be shown to them."""


class NotTheirsError(RefusedError):
    """Somebody asked for the work of another."""


class Store:
    """The projects of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._heads: dict[int, tuple[str, Settings]] = {}
        """Names and settings of projects, which never change."""

    @classmethod
    def open(cls, location: str | Path, *, create: bool = False) -> Store:
        """A file of SQLite, or the URL of a PostgreSQL database, postgresql://..."""
        return cls(Database.open(str(location), create=create))

    def close(self) -> None:
        self._database.close()

    # Projects, people, items

    def projects(self) -> dict[str, int]:
        """Their names and numbers."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(projects.c.name, projects.c.id).order_by("id"))
            return {row.name: row.id for row in rows}

    def project(self, name: str | None = None) -> int:
        """The number of a project; without a name of the only one there is."""
        known = self.projects()
        if name is not None and name in known:
            return known[name]
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        raise CauserieError(
            f"there is no project {name!r}: there are {', '.join(known) or 'none'}"
            if name is not None or not known
            else f"say which project with --project: there are {', '.join(known)}"
        )

    def fingerprint(self, project: int) -> str:
        """What tells a project from every other one, of other databases too."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(projects).where(projects.c.id == project)).one()
        return sha256(f"{row.created!r} {row.name}".encode()).hexdigest()[:16]

    def create(self, name: str, settings: Settings) -> int:
        """Make a project."""
        name = _checked_name(name)
        with self._database.writing() as connection:
            if connection.scalar(sa.select(projects.c.id).where(projects.c.name == name)):
                raise CauserieError(
                    f"there is a project {name!r} already: choose another --project"
                )
            values = {"name": name, "settings": _dump(settings.to_json()), "created": time.time()}
            return _inserted(connection, projects, values)

    def add_items(self, project: int, new: Iterable[NewItem]) -> int:
        """Add those that are not there yet, by name; how many they are."""
        with self._database.writing() as connection:
            self._lock(connection, project)
            known = set(
                connection.scalars(sa.select(items.c.name).where(items.c.project == project))
            )
            rows = []
            for one in new:
                if one.item.name not in known:
                    known.add(one.item.name)
                    gold = [_event_fields(event) for event in one.gold]
                    values = {
                        "project": project,
                        "place": len(known) - 1,
                        "name": one.item.name,
                        "body": _dump(one.item.to_json()),
                        "gold": _dump(gold) if gold else None,
                        "priority": one.priority,
                    }
                    rows.append(values)
            _insert_all(connection, items, rows)
            return len(rows)

    def prioritise(self, project: int, priorities: Mapping[int, float]) -> None:
        """Say which items come first: the higher, the sooner."""
        with self._database.writing() as connection:
            for item, priority in priorities.items():
                of_it = (items.c.project == project) & (items.c.id == item)
                connection.execute(items.update().where(of_it).values(priority=priority))

    def add_person(self, project: int, name: str, role: Role, *, link: bool = True) -> str | None:
        """Add somebody, or give who is there a new link; the old one no longer works.

        Returns the secret token, which is kept nowhere; None without a link.
        """
        name = _checked_name(name)
        secret = new_secret() if link else None
        kept = digest(secret) if secret else None
        with self._database.writing() as connection:
            self._lock(connection, project)
            of_them = (people.c.project == project) & (people.c.name == name)
            row = connection.execute(sa.select(people.c.id, people.c.role).where(of_them)).first()
            if row is None:
                values = {"project": project, "name": name, "role": role, "digest": kept}
                number = _inserted(connection, people, values)
            else:
                number = row.id
                if row.role != role:
                    raise CauserieError(
                        f"{name} is {row.role} of this project: choose another name"
                    )
                if secret:
                    connection.execute(people.update().where(of_them).values(digest=kept))
        return token_of(number, secret) if secret else None

    def revoke(self, project: int, name: str) -> None:
        """From now on the link of this person works no more; what they did stays."""
        of_them = (people.c.project == project) & (people.c.name == name)
        with self._database.writing() as connection:
            if not connection.execute(people.update().where(of_them).values(digest=None)).rowcount:
                raise CauserieError(f"there is nobody called {name!r} in this project")

    def who(self, token: str) -> tuple[int, Person] | None:
        """The project and the person of a token; None if it is not, or no longer, valid."""
        parsed = parse_token(token)
        if parsed is None:
            return None
        number, secret = parsed
        with self._database.reading() as connection:
            row = connection.execute(sa.select(people).where(people.c.id == number)).first()
        if not matches(secret, row.digest if row else None) or row is None:
            return None
        return row.project, _person(row)

    # Assignments and events

    def assign(self, project: int, plan: Callable[[Snapshot], Iterable[NewAssignment]]) -> int:
        """Add what `plan` finds; nobody else assigns anything meanwhile."""
        with self._database.writing() as connection:
            self._lock(connection, project)
            new = list(plan(self._snapshot(connection, project)))
            for one in new:
                values = {name: getattr(one, name) for name in _ASSIGNED}
                number = _inserted(connection, assignments, {"project": project, **values})
                _insert_all(
                    connection, log, [{"assignment": number, **_logged(e)} for e in one.events]
                )
        return len(new)

    def item_of(self, project: int, assignment: int, person: int) -> int:
        """The item of somebody's assignment."""
        with self._database.reading() as connection:
            return _item_of(connection, project, assignment, person)

    def append(
        self, project: int, assignment: int, person: int, events: Sequence[Event]
    ) -> Snapshot:
        """Keep events, those with a known key once; all of them, or none if one is refused.

        When it returns they are on disk. Returns the item with all its assignments.
        """
        return self.append_soon(project, assignment, person, events).result()

    def append_soon(
        self, project: int, assignment: int, person: int, events: Sequence[Event]
    ) -> Future[Snapshot]:
        """The same for whoever has other things to do meanwhile."""

        def keep(connection: Connection) -> Snapshot:
            item = _item_of(connection, project, assignment, person)
            found = self._snapshot(connection, project, item=item)
            before = found.events.get(assignment, ())
            new = _accepted(found, found.assignments[assignment], _new_events(events, before))
            _insert_all(connection, log, [{"assignment": assignment, **_logged(e)} for e in new])
            return found.with_events(assignment, new)

        return self._database.write(keep)

    def snapshot(
        self, project: int, *, item: int | None = None, person: int | None = None
    ) -> Snapshot:
        """A project at one moment: whole, one item of it, or the items of a person."""
        with self._database.reading() as connection:
            return self._snapshot(connection, project, item=item, person=person)

    def _snapshot(
        self,
        connection: Connection,
        project: int,
        *,
        item: int | None = None,
        person: int | None = None,
    ) -> Snapshot:
        if project not in self._heads:
            head = connection.execute(sa.select(projects).where(projects.c.id == project)).one()
            self._heads[project] = head.name, Settings.from_json(json.loads(head.settings))
        name, settings = self._heads[project]
        wanted = assignments.c.project == project
        listed = items.c.project == project
        if item is not None:
            wanted, listed = wanted & (assignments.c.item == item), listed & (items.c.id == item)
        elif person is not None:
            own = sa.select(assignments.c.item).where(assignments.c.person == person)
            wanted, listed = wanted & assignments.c.item.in_(own), items.c.id.in_(own)
        of_project = people.c.project == project
        persons = connection.execute(sa.select(people).where(of_project).order_by("id"))
        things = connection.execute(sa.select(items).where(listed).order_by("place"))
        given = connection.execute(sa.select(assignments).where(wanted).order_by("id"))
        done = connection.execute(
            sa.select(log)
            .join(assignments, log.c.assignment == assignments.c.id)
            .where(wanted)
            .order_by(log.c.id)
        )
        events: dict[int, list[Event]] = defaultdict(list)
        for row in done:
            event = Event(row.key, row.action, json.loads(row.body), row.at)
            events[row.assignment].append(event)
        return Snapshot(
            project,
            name,
            settings,
            {row.id: _person(row) for row in persons},
            {row.id: _listed(row) for row in things},
            {row.id: _assignment(row) for row in given},
            dict(events),
        )

    def _lock(self, connection: Connection, project: int) -> None:
        rows = sa.select(projects.c.id).where(projects.c.id == project).with_for_update()
        connection.execute(rows).one()


def _checked_name(name: str) -> str:
    try:
        return text(name, "name")
    except RecordError as bad:
        raise CauserieError(f"{name!r} cannot be a name: {bad}") from None


_ASSIGNED = ("item", "person", "round", "swapped", "base")


def _item_of(connection: Connection, project: int, assignment: int, person: int) -> int:
    """Raises `NotTheirsError`; where it is to be changed, others wait until that is done."""
    chosen = (assignments.c.project == project) & (assignments.c.id == assignment)
    own = chosen & (assignments.c.person == person)
    row = connection.execute(sa.select(assignments.c.item).where(own).with_for_update()).first()
    if row is None:
        raise NotTheirsError("there is no such assignment of yours")
    return int(row.item)


def _accepted(found: Snapshot, one: Assignment, new: Sequence[Event]) -> list[Event]:
    """The events with the time they came; raises `RefusedError` if one cannot be."""
    if new and found.is_closed(one):
        raise RefusedError("the item has gone on to the next round: nothing can be changed")
    start = None if one.base is None else reviewed(found.states[one.base])
    before = list(found.events.get(one.id, ()))
    accepted = [replace(event, at=time.time()) for event in new]
    for event in accepted:
        try:
            check(event, found.items[one.item].item, found.task, before, state_of(before, start))
        except RecordError as bad:
            raise RefusedError(f"{event.action}: {bad}") from None
        before.append(event)
    return accepted


def _new_events(events: Sequence[Event], before: Sequence[Event]) -> list[Event]:
    """Those that are not kept yet; a key stands for one event for ever."""
    known = {event.key: event for event in before}
    new: list[Event] = []
    for event in events:
        kept = known.setdefault(event.key, event)
        if kept is event:
            new.append(event)
        elif (kept.action, dict(kept.body)) != (event.action, dict(event.body)):
            raise RefusedError(f"key {event.key} has been used for something else")
    return new


def _dump(value: object) -> str:
    return json.dumps(value)  # ASCII: no character is one that a database refuses


def _insert_all(connection: Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _CHUNK):
        connection.execute(table.insert(), rows[start : start + _CHUNK])


def _inserted(connection: Connection, table: sa.Table, values: dict[str, Any]) -> int:
    key = connection.execute(table.insert().values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _logged(event: Event) -> dict[str, Any]:
    return {**vars(event), "body": _dump(dict(event.body))}


def _event_fields(event: Event) -> dict[str, Any]:
    return {**vars(event), "body": dict(event.body)}


def _person(row: sa.Row[Any]) -> Person:
    return Person(row.id, row.name, row.role, row.digest is not None)


def _listed(row: sa.Row[Any]) -> Listed:
    gold: State | None = None
    if row.gold is not None:
        gold = state_of(Event(**fields) for fields in json.loads(row.gold))
    item = Item.from_json(row.name, json.loads(row.body))
    return Listed(row.id, row.place, item, gold, row.priority)


def _assignment(row: sa.Row[Any]) -> Assignment:
    return Assignment(row.id, row.item, row.person, row.round, bool(row.swapped), row.base)
