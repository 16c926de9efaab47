"""The audit log: who changed what at the console. It only grows."""

from __future__ import annotations

import time

import msgspec
import sqlalchemy as sa

from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store


class Entry(msgspec.Struct, frozen=True):
    """One change. `what` is a code (`key.create`), `about` names the thing."""

    at: float
    who: str
    what: str
    about: str


def add_entry(store: Store, who: str, what: str, about: str) -> None:
    """Write one down."""
    with store.writing() as to:
        to.connection.execute(sa.insert(tables.audit), {"at": time.time(), "who": who, "what": what, "about": about})


def last_entries(store: Store, most: int) -> list[Entry]:
    """The newest ones, newest first."""
    audit = tables.audit
    with store.reading() as connection:
        rows = connection.execute(sa.select(audit).order_by(audit.c.id.desc()).limit(most))
        return [Entry(row.at, row.who, row.what, row.about) for row in rows]
