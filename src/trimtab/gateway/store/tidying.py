"""Keep the store small: old minutes become days, and what is of no more use goes."""

from __future__ import annotations

import sqlalchemy as sa

from trimtab.gateway.store import tables
from trimtab.gateway.store.batches import add_usage, periods
from trimtab.gateway.store.database import Store
from trimtab.gateway.tally import Rows, folded

HOUR_S, DAY_S = 3600, 86400
MINUTES_KEPT_S = 3 * DAY_S
WORKERS_KEPT_S = 7 * DAY_S
SPENT_KEPT_S = 62 * DAY_S
_HOURS = 24  # of minutes that are added up at once


def tidy(store: Store, now: float) -> None:
    """Add up the minutes of days long past, forget workers that are gone and what they told."""
    workers, shares, spent = tables.workers, tables.shares, tables.spent
    with store.writing() as to:
        to.connection.execute(sa.delete(shares).where(shares.c.minute < int(now) // 60 - 5))
        to.connection.execute(sa.delete(workers).where(workers.c.seen < now - WORKERS_KEPT_S))
        old = periods(now - SPENT_KEPT_S)[0]
        to.connection.execute(sa.delete(spent).where(spent.c.period < old[:7]))
    _fold(store, int(now - MINUTES_KEPT_S) // DAY_S * DAY_S)


def _fold(store: Store, before: int) -> None:
    """Hour by hour, so that no transaction keeps the others waiting for long."""
    usage = tables.usage
    minutes = sa.and_(usage.c.start < before, usage.c.start % DAY_S != 0)
    groups, sums = [usage.c[name] for name in tables.GROUP], [usage.c[name] for name in tables.COUNTS]
    for _ in range(_HOURS):
        with store.reading() as connection:
            first = connection.execute(sa.select(sa.func.min(usage.c.start)).where(minutes)).scalar_one()
        if first is None:
            return
        hour = sa.and_(minutes, usage.c.start < first // HOUR_S * HOUR_S + HOUR_S)
        with store.writing() as to:
            found = to.connection.execute(sa.select(*groups, *sums).where(hour)).all()
            rows: Rows = {tuple(row[: len(groups)]): list(row[len(groups) :]) for row in found}
            to.connection.execute(sa.delete(usage).where(hour))
            add_usage(to, folded(rows, DAY_S))
