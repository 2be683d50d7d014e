"""The database tables of annotation projects, and the triggers that keep the log append-only."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1

metadata = sa.MetaData()


def _key() -> sa.Column[int]:
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # only INTEGER autoincrements there
    return sa.Column("id", number, primary_key=True)


def _of(table: sa.Table, name: str) -> sa.Column[int]:
    return sa.Column(name, sa.ForeignKey(table.c.id), nullable=False, index=True)


meta = sa.Table("annotation_format", metadata, sa.Column("version", sa.Integer, nullable=False))

projects = sa.Table(
    "projects",
    metadata,
    _key(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)

people = sa.Table(
    "people",
    metadata,
    _key(),
    _of(projects, "project"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("digest", sa.Text),
    sa.UniqueConstraint("project", "name"),
)

items = sa.Table(
    "items",
    metadata,
    _key(),
    _of(projects, "project"),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("gold", sa.Text),
    sa.Column("priority", sa.Double, nullable=False),
    sa.UniqueConstraint("project", "name"),
)

assignments = sa.Table(
    "assignments",
    metadata,
    _key(),
    _of(projects, "project"),
    _of(items, "item"),
    _of(people, "person"),
    sa.Column("round", sa.Text, nullable=False),
    sa.Column("swapped", sa.Boolean, nullable=False),
    sa.Column("base", sa.ForeignKey("assignments.id")),
    sa.UniqueConstraint("item", "person", "round"),
)

log = sa.Table(
    "log",
    metadata,
    _key(),
    _of(assignments, "assignment"),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.UniqueConstraint("assignment", "key"),
    sqlite_autoincrement=True,
)


def _guard(statement: str, dialect: str) -> None:
    made = sa.DDL(statement)  # type: ignore[no-untyped-call]
    sa.event.listen(log, "after_create", made.execute_if(dialect=dialect))


for change in ("UPDATE", "DELETE"):
    _guard(
        f"CREATE TRIGGER log_keeps_{change.lower()} BEFORE {change} ON log "
        "BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
        "sqlite",
    )
_guard(
    "CREATE OR REPLACE FUNCTION causerie_keep_log() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN RAISE EXCEPTION 'the log is append-only'; END$$",
    "postgresql",
)
_guard(
    "CREATE TRIGGER log_keeps BEFORE UPDATE OR DELETE OR TRUNCATE ON log "
    "FOR EACH STATEMENT EXECUTE FUNCTION causerie_keep_log()",
    "postgresql",
)
