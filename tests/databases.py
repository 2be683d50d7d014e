"""Both databases of projects: a file, and a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server with nothing in it; skipped where none can be started."""
    pytest.importorskip("pg8000", reason="pg8000 is not installed")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else shutil.which("initdb")
    if initdb is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    as_user: list[str] = []
    if os.name == "posix" and os.getuid() == 0:  # the server refuses to be root
        runuser = shutil.which("runuser")
        known = subprocess.run(["id", "-u", "postgres"], capture_output=True, check=False)
        if runuser is None or known.returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        as_user = [runuser, "-u", "postgres", "--"]
    # pytest's own folders are closed to other users
    place = Path(tempfile.mkdtemp(prefix="causerie-postgresql-"))
    if as_user:
        shutil.chown(place, "postgres")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    control = str(Path(initdb).with_name("pg_ctl"))
    data = str(place / "data")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {place}"
    made = [initdb, "-D", data, "-U", "causerie", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    subprocess.run([*as_user, *made, "--locale=C"], check=True, capture_output=True, cwd="/")
    started = [*as_user, control, "-D", data, "-w", "-l", f"{place}/log", "-o", options, "start"]
    subprocess.run(started, check=True, stdout=subprocess.DEVNULL, cwd="/")
    try:
        yield f"postgresql://causerie@127.0.0.1:{port}/"
    finally:
        stopped = [*as_user, control, "-D", data, "-m", "immediate", "stop"]
        subprocess.run(stopped, check=True, stdout=subprocess.DEVNULL, cwd="/")
        shutil.rmtree(place)


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of its own can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "project.db")
    import pg8000.dbapi

    server = request.getfixturevalue("postgresql")
    name = f"t{uuid.uuid4().hex}"
    port = int(server.rstrip("/").rpartition(":")[2])
    connection = pg8000.dbapi.connect("causerie", host="127.0.0.1", port=port, database="postgres")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return f"{server}{name}"
