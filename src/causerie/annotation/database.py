"""The database of annotation projects: a SQLite file, or a database of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from causerie.annotation.tables import VERSION, meta, metadata
from causerie.errors import CauserieError

_Made = TypeVar("_Made")
_BUSY = 30
"""Seconds to wait for another writer of a SQLite file."""


class Database:
    """A database with transactions for reading and for writing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._waiting: list[_Job[Any]] = []
        self._lock = Lock()
        self._writer = ThreadPoolExecutor(1, "causerie-writer")

    @classmethod
    def open(cls, location: str, *, create: bool) -> Database:
        """Open a SQLite file, or a PostgreSQL database by its URL, postgresql://..."""
        url = _url(location)
        if url.get_backend_name() == "sqlite":
            path = Path(str(url.database))
            if not create and not path.is_file():
                raise CauserieError(f"{path} does not exist: create it with causerie annotate init")
            engine = sa.create_engine(url, connect_args={"timeout": _BUSY})
            sa.event.listen(engine, "connect", _set_up)
            sa.event.listen(engine, "begin", _begin)
        else:
            try:
                engine = sa.create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True)
            except ImportError as error:
                raise CauserieError(
                    "a PostgreSQL database needs pg8000: pip install 'causerie[postgresql]'"
                ) from error
        try:
            with engine.begin() as connection:
                metadata.create_all(connection)
                kept = connection.scalar(sa.select(meta.c.version))
                if kept is None:
                    connection.execute(meta.insert().values(version=VERSION))
        except (SQLAlchemyError, OSError) as error:
            engine.dispose()
            shown = url.render_as_string(hide_password=True)
            if "not a database" in _cause(error):  # a wrong file name, whatever the system's state
                raise CauserieError(f"{shown} is not a project: name another file") from None
            raise CauserieError(f"{shown} cannot be opened: {_cause(error)}") from error
        if kept not in (None, VERSION):
            engine.dispose()
            raise CauserieError(
                f"{url.render_as_string(hide_password=True)} has format version {kept}, but this "
                f"causerie uses {VERSION}: use the version of causerie that created it"
            )
        return cls(engine)

    def close(self) -> None:
        self._writer.shutdown()
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that reads the state of one moment."""
        with _failures_told(), self._engine.connect() as connection:
            if not self._is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes: one at a time in SQLite, row by row in PostgreSQL."""
        with _failures_told(), self._engine.connect() as connection:
            connection = connection.execution_options(causerie_writes=True)
            with connection.begin():
                yield connection

    def write(self, work: Callable[[Connection], _Made]) -> Future[_Made]:
        """Queue work that writes; its result is set once it is on disk.

        Reaching the disk takes longest, so one thread does all waiting work in one transaction.
        Work that raises is rolled back alone.
        """
        job = _Job(work)
        with self._lock:
            self._waiting.append(job)
            if len(self._waiting) == 1:
                self._writer.submit(self._do_waiting)
        return job.future

    def _do_waiting(self) -> None:
        with self._lock:
            jobs, self._waiting = self._waiting, []
        try:
            with self.writing() as connection:
                for job in jobs:
                    job.run(connection, alone=len(jobs) == 1)
        except Exception as error:  # nothing has reached the disk
            for job in jobs:
                job.future.set_exception(error)
        else:
            for job in jobs:
                job.tell()


class _Job(Generic[_Made]):
    """A unit of waiting work and its result."""

    def __init__(self, work: Callable[[Connection], _Made]) -> None:
        self._work = work
        self._made: list[_Made] = []
        self._error: Exception | None = None
        self.future: Future[_Made] = Future()
        self.future.set_running_or_notify_cancel()  # a caller that stops waiting cannot cancel it

    def run(self, connection: Connection, *, alone: bool) -> None:
        if alone:  # an error rolls back the whole transaction
            self._made = [self._work(connection)]
            return
        try:
            with connection.begin_nested():
                self._made = [self._work(connection)]
        except Exception as error:
            self._error = error

    def tell(self) -> None:
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._made[0])


def _url(location: str) -> URL:
    if "://" not in location:
        return URL.create("sqlite", database=location)
    try:
        url = make_url(location)
    except ArgumentError:
        url = None
    if url is not None and url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+pg8000")
    raise CauserieError(
        "a project must be a file, or a database given as postgresql://USER:PASSWORD@HOST/NAME"
    )


@contextmanager
def _failures_told() -> Iterator[None]:
    """Turn database errors (locked, full, damaged, unreachable) into one clear sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        raise CauserieError(
            f"the project's database cannot be used ({_cause(error)}): wait until no other program "
            "locks it, free disk space, or repair it"
        ) from error


def _set_up(connection: Any, record: object) -> None:
    """Configure a SQLite connection: readers do not wait for writers, commits reach the disk."""
    connection.isolation_level = None  # the driver begins no transaction by itself
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("causerie_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _cause(error: BaseException) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error).split("\n")[0]
