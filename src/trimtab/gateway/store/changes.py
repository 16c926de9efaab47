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
        version: int = connection.execute(sa.select(tables.clock.c.version)).scalar_one()
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
    keys, plans = tables.keys, tables.plans
    chosen = sa.select(keys, plans.c.limits.label("of_plan")).outerjoin(plans, plans.c.name == keys.c.plan)
    rows = connection.execute(chosen.where(keys.c.version > since)).all()
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
    spent = tables.spent
    touched = sa.select(spent.c.key_id).where(spent.c.version > since)
    chosen = sa.select(spent).where(spent.c.period.in_((day, month)), spent.c.key_id.in_(touched))
    found: dict[str, dict[str, sa.Row[Any]]] = {}
    for row in connection.execute(chosen):
        found.setdefault(row.key_id, {})[row.period] = row
    return {key: _sums(rows.get(day), rows.get(month)) for key, rows in found.items()}


def _sums(day: sa.Row[Any] | None, month: sa.Row[Any] | None) -> Spent:
    return Spent(
        day.tokens if day else 0, month.tokens if month else 0, day.money if day else 0.0, month.money if month else 0.0
    )


def _shares(connection: sa.Connection, since: int, worker: str) -> dict[tuple[str, str], Share]:
    shares = tables.shares
    chosen = sa.select(shares).where(shares.c.version > since, shares.c.worker != worker)
    return {(row.worker, row.key_id): _share.decode(row.share) for row in connection.execute(chosen)}


def _workers(connection: sa.Connection, since: int, worker: str) -> tuple[str, ...]:
    workers = tables.workers
    chosen = sa.select(workers.c.id).where(workers.c.version > since, workers.c.id != worker)
    return tuple(connection.execute(chosen).scalars())


def _providers(connection: sa.Connection, since: int) -> bool:
    chosen = sa.select(sa.exists().where(tables.providers.c.version > since))
    return bool(connection.execute(chosen).scalar_one())
