"""Read what changed in the store since a version: keys, what was spent, what other workers count."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from trimtab.gateway.admission import Share, Spent
from trimtab.gateway.limits import Limits, merged
from trimtab.gateway.store import tables
from trimtab.gateway.store.batches import periods
from trimtab.gateway.store.database import Store

_limits = msgspec.json.Decoder(Limits)
_share = msgspec.json.Decoder(Share)
_SOME = 500  # ids in one statement


class KeyChange(msgspec.Struct, frozen=True):
    """A key as it is now: its limits in force, and its texts' hashes with the time at which each ends."""

    id: str
    label: str
    owner: str
    limits: Limits
    admin: bool
    expires: float | None
    revoked: float | None
    texts: dict[bytes, float | None]


class Changes(msgspec.Struct, frozen=True):
    """What is new up to `version`."""

    version: int
    keys: tuple[KeyChange, ...] = ()
    spent: dict[str, Spent] = {}  # by key, of the present day and month
    shares: dict[tuple[str, str], Share] = {}  # by worker and key
    workers: tuple[str, ...] = ()  # those that said that they are there
    providers: bool = False  # whether a provider's key changed


def changes(store: Store, since: int, now: float, worker: str = "") -> Changes:
    """What was written after version `since`; of other workers than `worker`."""
    with store.reading() as connection:
        version: int = connection.execute(_VERSION).scalar_one()
        if version == since:
            return Changes(version)
        if version < since:  # the store was put back to an earlier state: everything may be other
            since = 0
        return Changes(
            version,
            _keys(connection, since),
            _spent(connection, since, now),
            _shares(connection, since, worker),
            _workers(connection, since, worker),
            _providers(connection, since),
        )


def spent_now(store: Store, now: float) -> dict[str, Spent]:
    """What every key spent of the present day and month."""
    with store.reading() as connection:
        return _spent(connection, 0, now)


def _keys(connection: sa.Connection, since: int) -> tuple[KeyChange, ...]:
    rows = connection.execute(_KEYS, {"since": since}).all()
    texts = _texts(connection, [row.id for row in rows])
    return tuple(_key(row, texts.get(row.id, {})) for row in rows)


def _key(row: sa.Row[Any], texts: dict[bytes, float | None]) -> KeyChange:
    plan = _limits.decode(row.of_plan) if row.of_plan is not None else None
    limits = merged(_limits.decode(row.limits), plan)
    return KeyChange(row.id, row.label, row.owner, limits, row.admin, row.expires, row.revoked, texts)


def _texts(connection: sa.Connection, ids: list[str]) -> dict[str, dict[bytes, float | None]]:
    found: dict[str, dict[bytes, float | None]] = {}
    for at in range(0, len(ids), _SOME):
        chosen = sa.select(tables.texts).where(tables.texts.c.key_id.in_(ids[at : at + _SOME]))
        for row in connection.execute(chosen):
            found.setdefault(row.key_id, {})[bytes(row.hash)] = row.ends
    return found


def _spent(connection: sa.Connection, since: int, now: float) -> dict[str, Spent]:
    day, month = periods(now)
    found: dict[str, list[float]] = {}
    for id, period, tokens, money in connection.execute(_SPENT, {"since": since, "day": day, "month": month}):
        sums = found.setdefault(id, [0, 0, 0.0, 0.0])
        at = 0 if period == day else 1
        sums[at], sums[at + 2] = tokens, money
    return {id: Spent(int(sums[0]), int(sums[1]), sums[2], sums[3]) for id, sums in found.items()}


def _shares(connection: sa.Connection, since: int, worker: str) -> dict[tuple[str, str], Share]:
    rows = connection.execute(_SHARES, {"since": since, "me": worker})
    return {(other, id): _share.decode(share) for other, id, share in rows}


def _workers(connection: sa.Connection, since: int, worker: str) -> tuple[str, ...]:
    return tuple(connection.execute(_WORKERS, {"since": since, "me": worker}).scalars())


def _providers(connection: sa.Connection, since: int) -> bool:
    return connection.execute(_PROVIDERS, {"since": since}).first() is not None


# Built once: building them takes longer than running them.
_since: sa.BindParameter[int] = sa.bindparam("since")
_me: sa.BindParameter[str] = sa.bindparam("me")
_VERSION = sa.select(tables.clock.c.version)
_KEYS = (
    sa.select(tables.keys, tables.plans.c.limits.label("of_plan"))
    .outerjoin(tables.plans, tables.plans.c.name == tables.keys.c.plan)
    .where(tables.keys.c.version > _since)
)
_SPENT = sa.select(tables.spent.c.key_id, tables.spent.c.period, tables.spent.c.tokens, tables.spent.c.money).where(
    tables.spent.c.period.in_((sa.bindparam("day"), sa.bindparam("month"))),
    tables.spent.c.key_id.in_(sa.select(tables.spent.c.key_id).where(tables.spent.c.version > _since)),
)
_SHARES = sa.select(tables.shares.c.worker, tables.shares.c.key_id, tables.shares.c.share).where(
    tables.shares.c.version > _since, tables.shares.c.worker != _me
)
_WORKERS = sa.select(tables.workers.c.id).where(tables.workers.c.version > _since, tables.workers.c.id != _me)
_PROVIDERS = sa.select(tables.providers.c.name).where(tables.providers.c.version > _since).limit(1)
