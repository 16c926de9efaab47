"""Keep the store small: old minutes become days, and what is of no more use goes."""

from __future__ import annotations

import sqlalchemy as sa

from trimtab.gateway.store import tables
from trimtab.gateway.store.batches import add_usage, periods
from trimtab.gateway.store.database import Store
from trimtab.gateway.tally import Group, folded

MINUTES_KEPT_S = 35 * 86400
WORKERS_KEPT_S = 7 * 86400
SPENT_KEPT_S = 62 * 86400
_SOME = 20_000  # rows that one transaction adds up


def tidy(store: Store, now: float) -> None:
    """Add up the minutes of days long past, forget workers that are gone and what they told."""
    workers, shares, spent = tables.workers, tables.shares, tables.spent
    with store.writing() as to:
        to.connection.execute(sa.delete(shares).where(shares.c.minute < int(now) // 60 - 5))
        to.connection.execute(sa.delete(workers).where(workers.c.seen < now - WORKERS_KEPT_S))
        old = periods(now - SPENT_KEPT_S)[0]
        to.connection.execute(sa.delete(spent).where(spent.c.period < old[:7]))
    _fold(store, int(now - MINUTES_KEPT_S) // 86400 * 86400)


def _fold(store: Store, before: int) -> None:
    usage = tables.usage
    minutes = sa.and_(usage.c.start < before, usage.c.start % 86400 != 0)
    with store.reading() as connection:
        first = connection.execute(sa.select(sa.func.min(usage.c.start)).where(minutes)).scalar_one()
    if first is None:
        return
    day = first // 86400 * 86400
    whole = sa.and_(usage.c.start >= day, usage.c.start < day + 86400)
    with store.writing() as to:
        groups = [usage.c[name] for name in tables.GROUP]
        sums = [usage.c[name] for name in tables.COUNTS]
        size = len(groups)
        rows: dict[Group, list[float]] = {
            tuple(row[:size]): list(row[size:]) for row in to.connection.execute(sa.select(*groups, *sums).where(whole))
        }
        to.connection.execute(sa.delete(usage).where(whole))
        add_usage(to, folded(rows, 86400))
