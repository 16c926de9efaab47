"""Stores for the tests: a file of SQLite and a database of a PostgreSQL server that this run starts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.ports import free_port
from trimtab.gateway.store.database import Store, open_store

START_S = 60.0


def program(name: str) -> str:
    """A program of PostgreSQL: on the path, or where Debian puts it."""
    found = shutil.which(name) or next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    assert found is not None, f"{name} of PostgreSQL is not here: scripts/install installs it"
    return str(Path(found).resolve())


@dataclass
class Postgres:
    """A server of this run, which a test may stop and start."""

    port: int
    directory: Path
    user: str | None  # PostgreSQL does not run as root
    process: subprocess.Popen[bytes] | None = None
    made: int = 0

    def address(self, database: str) -> str:
        return f"postgresql://tester:kept-secret@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        argv = [program("postgres"), "-D", str(self.directory / "data"), "-p", str(self.port), "-h", "127.0.0.1"]
        argv += ["-k", str(self.directory), "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=40"]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, user=self.user, stdout=log, stderr=log, cwd=self.directory)
        end = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, (self.directory / "log").read_text()
                assert self.process.poll() is None, (self.directory / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)  # at once, whoever is connected
            self.process.wait(30)
            self.process = None

    def database(self, *, like: str = "template1") -> str:
        """The address of a database that is made like another; an empty one by default."""
        self.made += 1
        name = f"store{self.made}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}".encode())
        return self.address(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    directory = Path(tempfile.mkdtemp(prefix="trimtab-postgres-", dir="/tmp"))
    user = "postgres" if os.getuid() == 0 else None
    password = directory / "password"
    password.write_text("kept-secret")
    if user is not None:
        for path in (directory, password):
            shutil.chown(path, user)
    port = free_port()
    made = [program("initdb"), "-D", str(directory / "data"), "-U", "tester", "-A", "scram-sha-256", "-N"]
    subprocess.run([*made, "--pwfile", str(password)], user=user, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    server = Postgres(port, directory, user)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def sqlite_with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store's file, to be copied: its tables are made once."""
    file = tmp_path_factory.mktemp("tables") / "store.db"
    open_store(str(file), file).close()
    return file


@pytest.fixture(scope="session")
def postgres_with_tables(postgres: Postgres) -> str:
    """The name of a database, to be copied."""
    address = postgres.database()
    open_store(address, Path("unused")).close()
    return address.rpartition("/")[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store on each of the two engines; it is not there yet, unless the test takes a `store`, too."""
    made = "store" in request.fixturenames
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        like = request.getfixturevalue("postgres_with_tables") if made else "template1"
        return server.database(like=like)
    file = tmp_path / "data" / "store.db"
    if made:
        file.parent.mkdir(mode=0o700)
        shutil.copy(request.getfixturevalue("sqlite_with_tables"), file)
    return str(file)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address, Path("unused"))
    yield opened
    opened.close()
