"""Open the store, bring its tables up to date, and run transactions in it. All failures are HostErrors that name it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import event, exc

from trimtab.errors import HostError, UsageError
from trimtab.gateway.store.tables import clock
from trimtab.messages import msg

HEAD = "0002"  # the newest migration
BUSY_S = 5.0  # that one transaction waits for another
CONNECT_S = 3
STATEMENT_MS = 5000
_WRITES = "trimtab_writes"
_RAISED = sa.update(clock).values(version=clock.c.version + 1).returning(clock.c.version)


class Writing(msgspec.Struct, frozen=True):
    """A transaction that writes, and the version that its rows carry."""

    connection: sa.Connection
    version: int


class Store:
    """An open store. Used by one thread at a time; `shown` is its address without a password."""

    def __init__(self, engine: sa.Engine, shown: str) -> None:
        self.engine, self.shown = engine, shown
        self._file = _identity(Path(shown)) if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of this machine."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """A transaction that writes; all others that write wait for its end."""
        self._follow()
        with self._faults(), self._to_write() as connection, connection.begin():
            yield Writing(connection, connection.execute(_RAISED).scalar_one())

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads."""
        self._follow()
        with self._faults(), self.engine.connect() as connection, connection.begin():
            yield connection

    def _follow(self) -> None:
        """A file that was removed takes what is written with it, and one put in its place is not the one that is open.

        HostError while there is none.
        """
        if self._file is None:
            return
        present = _identity(Path(self.shown))
        if present is None:
            raise _unusable(self.shown, os.strerror(errno.ENOENT))
        if present != self._file:
            self.engine.dispose()
            self._file = present

    def _to_write(self) -> sa.Connection:
        return self.engine.connect().execution_options(**{_WRITES: True})

    def close(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise unreachable(self.shown, error) from error


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_store(address: str | None, default: Path) -> Store:
    """The store at an SQLAlchemy URL or a file's path, the file `default` without one, its tables brought up to date.

    UsageError for an address that names none, HostError when it cannot be reached or is newer than this Trimtab.
    """
    url = _url(address or str(default))
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        shown = url.database or shown
        _private_file(Path(shown))
    store = Store(_engine(url), shown)
    try:
        with store._faults():
            _up_to_date(store)
    except BaseException:
        store.close()
        raise
    return store


def look(address: str | None, default: Path) -> Store | None:
    """The store as it is, found to be reachable and writable, or None where it is yet to be made; nothing is changed.

    UsageError for an address that names none, HostError when it cannot be used or is newer than this Trimtab.
    """
    url = _url(address or str(default))
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        shown = url.database or shown
        _require_writable(Path(shown))
        if not Path(shown).exists():
            return None
    store = Store(_engine(url), shown)
    try:
        with store._faults(), store._to_write() as connection, connection.begin() as tried:
            present = _present(connection)
            _require_known(present, shown)
            if present is None:
                connection.exec_driver_sql("CREATE TABLE trimtab_tried (n INTEGER)")
            else:
                connection.execute(_RAISED)
            tried.rollback()
    except BaseException:
        store.close()
        raise
    if present is not None:
        return store
    store.close()
    return None


def _require_writable(file: Path) -> None:
    place = file
    while not place.exists():
        place = place.parent
    fits = place.is_file() if place == file else place.is_dir()
    if not fits or not os.access(place, os.R_OK | os.W_OK):
        raise HostError(
            msg("the store {store} cannot be used: {reason}", store=file, reason=msg("{file} cannot be written",
                file=place)),
            hint=msg("Mend its owner or mode, or name another with --store."),
        )  # fmt: skip


def unreachable(shown: str, error: exc.SQLAlchemyError) -> HostError:
    """What is told of a failure of the store: the driver's own words, without the statement and its values."""
    origin = getattr(error, "orig", None)
    words = str(origin or error).strip().splitlines()
    return _unusable(shown, words[0] if words else type(error).__name__)


def _unusable(shown: str, reason: str) -> HostError:
    return HostError(
        msg("the store {store} cannot be used: {reason}", store=shown, reason=reason),
        hint=msg("Check that it is there, that this user may write to it, and that its disk is not full."),
    )


def _url(address: str) -> sa.URL:
    if "://" not in address:
        return sa.URL.create("sqlite", database=str(Path(address).expanduser().absolute()))
    try:
        url = sa.make_url(address)
        kind = url.get_backend_name()
    except (exc.ArgumentError, ValueError):
        kind = ""
    if kind == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    if kind == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise UsageError(
        msg("the store is not named by {what}", what=address.partition("://")[0] + "://..."),
        hint=msg("Name a file, sqlite:////path/to/store.db or postgresql://user@host/database."),
    )


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_S, "check_same_thread": False})
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begins)
        return engine
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_S,
        "tcp_user_timeout": STATEMENT_MS,
        "options": f"-c statement_timeout={STATEMENT_MS} -c idle_in_transaction_session_timeout={STATEMENT_MS}",
    }
    try:
        engine = sa.create_engine(url, connect_args=arguments, pool_size=1, max_overflow=2)
        from trimtab.gateway.store.postgres import Bounded
    except ImportError as error:
        raise UsageError(
            msg("PostgreSQL needs the package psycopg, which is not installed"),
            hint=msg("Install it: pip install 'trimtab[postgres]'"),
        ) from error
    event.listen(engine, "do_connect", lambda _, __, words, named: Bounded.connect(*words, **named))
    return engine


def _sqlite_connected(connection: Any, _: object) -> None:
    """WAL lets others read while one writes; FULL has a power cut lose nothing that was committed."""
    connection.isolation_level = None  # transactions begin where `_sqlite_begins` says, not where sqlite3 guesses
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={int(BUSY_S * 1000)}"):
        connection.execute(f"PRAGMA {pragma}").close()


def _sqlite_begins(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _private_file(file: Path) -> None:
    """Make the file, readable by its owner alone; SQLite gives its side files the same mode."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise HostError(
            msg("the store {store} cannot be used: {reason}", store=file, reason=error.strerror),
            hint=msg("Mend its owner or mode, or name another with --store."),
        ) from error


def _up_to_date(store: Store) -> None:
    with store.engine.connect() as connection:
        if _present(connection) == HEAD:
            return
    with store._to_write() as connection, connection.begin():
        if not store.is_sqlite:  # SQLite's BEGIN IMMEDIATE keeps a second gateway out already
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7874622)")
        present = _present(connection)
        if present == HEAD:
            return
        _require_known(present, store.shown)
        from trimtab.gateway.store.upgrading import upgrade

        upgrade(connection)


def _require_known(present: str | None, shown: str) -> None:
    if present in (None, HEAD):
        return
    from trimtab.gateway.store.upgrading import known

    if present not in known():
        raise HostError(
            msg("the store {store} was made by a newer Trimtab (its tables are at {present})", store=shown,
                present=present),
            hint=msg("Update Trimtab: pip install -U trimtab"),
        )  # fmt: skip


def _present(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
