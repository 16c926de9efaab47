"""Logins of the console in the store, so that every worker knows them; their secrets are kept nowhere."""

from __future__ import annotations

import hashlib
import secrets
import time

import sqlalchemy as sa

from trimtab.gateway.secret import Secret
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store

LOGIN_S = 12 * 3600.0
LINK_S = 3600.0
_LONGEST = 128  # of a secret that is looked at: ours are shorter


def open_login(store: Store, key_id: str, *, lasts_s: float = LOGIN_S) -> Secret:
    """Begin a login under an admin key ("" for a one-time link's); what has ended is forgotten."""
    return _add(store, key_id, lasts_s, once=False)


def make_link(store: Store) -> Secret:
    """The secret of a link that logs in once, within LINK_S."""
    return _add(store, "", LINK_S, once=True)


def use_link(store: Store, text: str) -> bool:
    """Whether `text` is the secret of a link that still held; it holds no more."""
    logins = tables.logins
    with store.writing() as to:
        asked = sa.delete(logins).where(
            logins.c.hash == _hash(text), logins.c.once.is_(True), logins.c.expires > time.time()
        )
        return to.connection.execute(asked).rowcount == 1


def key_of_login(store: Store, text: str) -> str | None:
    """The id of the key that a login was opened with; None when it is none, or has ended."""
    logins = tables.logins
    with store.reading() as connection:
        asked = sa.select(logins.c.key_id).where(
            logins.c.hash == _hash(text), logins.c.once.is_(False), logins.c.expires > time.time()
        )
        found: str | None = connection.execute(asked).scalar_one_or_none()
        return found


def close_login(store: Store, text: str) -> None:
    """End a login at once."""
    with store.writing() as to:
        to.connection.execute(sa.delete(tables.logins).where(tables.logins.c.hash == _hash(text)))


def _add(store: Store, key_id: str, lasts_s: float, *, once: bool) -> Secret:
    text, now = secrets.token_urlsafe(32), time.time()
    with store.writing() as to:
        to.connection.execute(sa.delete(tables.logins).where(tables.logins.c.expires <= now))
        row = {"hash": _hash(text), "key_id": key_id, "once": once, "expires": now + lasts_s}
        to.connection.execute(sa.insert(tables.logins), row)
    return Secret(text)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text[:_LONGEST].encode()).digest()
