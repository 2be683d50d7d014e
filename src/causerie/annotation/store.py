"""The store of projects: SQLite, or PostgreSQL for teams.

The log of events is append-only, enforced by the database itself. Events are on disk when
`append` returns. A snapshot shows one moment, however many people work meanwhile.
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
"""Most rows per statement."""


class RefusedError(CauserieError):
    """An action that somebody may not take; the message may be shown to them."""


class NotTheirsError(RefusedError):
    """A request for somebody else's work."""


class Store:
    """The projects of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._heads: dict[int, tuple[str, Settings]] = {}
        """Names and settings by project, which never change."""

    @classmethod
    def open(cls, location: str | Path, *, create: bool = False) -> Store:
        """Open a SQLite file, or a PostgreSQL database by its URL, postgresql://..."""
        return cls(Database.open(str(location), create=create))

    def close(self) -> None:
        self._database.close()

    # Projects, people, items

    def projects(self) -> dict[str, int]:
        """Return the numbers of all projects, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(projects.c.name, projects.c.id).order_by("id"))
            return {row.name: row.id for row in rows}

    def project(self, name: str | None = None) -> int:
        """Return the number of a project; the name may be omitted if there is only one."""
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
        """Return a hash that identifies the project, even among those of other databases."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(projects).where(projects.c.id == project)).one()
        return sha256(f"{row.created!r} {row.name}".encode()).hexdigest()[:16]

    def create(self, name: str, settings: Settings) -> int:
        """Create a project and return its number."""
        name = _checked_name(name)
        with self._database.writing() as connection:
            if connection.scalar(sa.select(projects.c.id).where(projects.c.name == name)):
                raise CauserieError(
                    f"there is already a project {name!r}: choose another --project"
                )
            values = {"name": name, "settings": _dump(settings.to_json()), "created": time.time()}
            return _inserted(connection, projects, values)

    def add_items(self, project: int, new: Iterable[NewItem]) -> int:
        """Add the items whose names are new, and return their number."""
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
        """Set priorities by item; those with higher ones come first."""
        with self._database.writing() as connection:
            for item, priority in priorities.items():
                of_it = (items.c.project == project) & (items.c.id == item)
                connection.execute(items.update().where(of_it).values(priority=priority))

    def add_person(self, project: int, name: str, role: Role, *, link: bool = True) -> str | None:
        """Add a person, or give an existing one a new link, which invalidates the old one.

        Return the secret token, which is stored nowhere, or None without a link.
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
                        f"{name} is already {row.role} of this project: choose another name"
                    )
                if secret:
                    connection.execute(people.update().where(of_them).values(digest=kept))
        return token_of(number, secret) if secret else None

    def revoke(self, project: int, name: str) -> None:
        """Invalidate the link of a person, whose work remains."""
        of_them = (people.c.project == project) & (people.c.name == name)
        with self._database.writing() as connection:
            if not connection.execute(people.update().where(of_them).values(digest=None)).rowcount:
                raise CauserieError(f"there is nobody named {name!r} in this project")

    def who(self, token: str) -> tuple[int, Person] | None:
        """Return the project and the person of a token, or None if it is not valid."""
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
        """Add the assignments of `plan`, while nobody else can assign anything."""
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
        """Return the item of somebody's assignment."""
        with self._database.reading() as connection:
            return _item_of(connection, project, assignment, person)

    def append(
        self, project: int, assignment: int, person: int, events: Sequence[Event]
    ) -> Snapshot:
        """Store events, ignoring those with a known key; if one is refused, none is stored.

        They are on disk when it returns. Return the item with all its assignments.
        """
        return self.append_soon(project, assignment, person, events).result()

    def append_soon(
        self, project: int, assignment: int, person: int, events: Sequence[Event]
    ) -> Future[Snapshot]:
        """Do the same as `append`, without waiting for the disk."""

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
        """Return a project at one moment: the whole, a single item, or the items of a person."""
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
    """Return the item, locking its row if the transaction writes; raise `NotTheirsError`."""
    chosen = (assignments.c.project == project) & (assignments.c.id == assignment)
    own = chosen & (assignments.c.person == person)
    row = connection.execute(sa.select(assignments.c.item).where(own).with_for_update()).first()
    if row is None:
        raise NotTheirsError("you have no such assignment")
    return int(row.item)


def _accepted(found: Snapshot, one: Assignment, new: Sequence[Event]) -> list[Event]:
    """Return the events with the time of arrival; raise `RefusedError` if one is not possible."""
    if new and found.is_closed(one):
        raise RefusedError("the item has moved on to the next round and can no longer be changed")
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
    """Return the events that are not stored yet; a key belongs to one event for ever."""
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
    return json.dumps(value)  # ASCII: every database accepts it


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
