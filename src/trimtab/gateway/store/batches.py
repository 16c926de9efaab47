"""Write down what a worker used: each batch in one transaction and, however often it is sent, counted once."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from trimtab.gateway.admission import Share
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Writing
from trimtab.gateway.tally import COMPLETION, MONEY, PROMPT, Rows


class Batch(msgspec.Struct, frozen=True):
    """Rows of the tally under the number that they are known by; numbers of one worker rise."""

    number: int
    rows: Rows


def enrol(to: Writing, worker: str, name: str, batch: int = 0) -> bool:
    """Say that a worker is there and which batch it brings; False when the store has that batch already."""
    row = {"id": worker, "name": name, "batch": batch, "seen": time.time(), "version": to.version}
    return to.connection.execute(_enrolling(_dialect(to), batch > 0), row).first() is not None


def greet(to: Writing, worker: str) -> None:
    """Say that a worker still is there."""
    chosen = sa.update(tables.workers).where(tables.workers.c.id == worker)
    to.connection.execute(chosen.values(seen=time.time(), version=to.version))


def leave(to: Writing, worker: str) -> None:
    """Say that a worker goes."""
    to.connection.execute(sa.delete(tables.workers).where(tables.workers.c.id == worker))


def write(to: Writing, worker: str, name: str, batch: Batch) -> bool:
    """Add a batch to the books; False when it was in them already."""
    if not enrol(to, worker, name, batch.number):
        return False
    add_usage(to, batch.rows)
    to.connection.execute(
        _adding(_dialect(to), tables.spent, ("key_id", "period"), ("tokens", "money")), _spent(to, batch)
    )
    return True


def add_usage(to: Writing, rows: Rows) -> None:
    """Add rows of the tally to those that are there."""
    named = [
        dict(zip(tables.GROUP, group, strict=True)) | dict(zip(tables.COUNTS, row, strict=True))
        for group, row in sorted(rows.items())
    ]
    to.connection.execute(_adding(_dialect(to), tables.usage, tables.GROUP, tables.COUNTS), named)


def tell(to: Writing, worker: str, shares: dict[str, Share]) -> None:
    """Tell the other workers what this one counts."""
    if not shares:
        return
    rows = [
        {"worker": worker, "key_id": key, "minute": share.minute, "share": msgspec.json.encode(share).decode(),
         "version": to.version}
        for key, share in sorted(shares.items())
    ]  # fmt: skip
    to.connection.execute(_telling(_dialect(to)), rows)


def periods(start: float) -> tuple[str, str]:
    """The day and the month of a time, UTC."""
    day = time.strftime("%Y-%m-%d", time.gmtime(start))
    return day, day[:7]


def _spent(to: Writing, batch: Batch) -> list[dict[str, Any]]:
    by_minute: dict[int, tuple[str, str]] = {}
    sums: dict[tuple[str, str], list[float]] = {}
    for (start, key, *_), row in batch.rows.items():
        for period in by_minute.get(start) or by_minute.setdefault(start, periods(start)):
            known = sums.setdefault((key, period), [0, 0.0])
            known[0] += row[PROMPT] + row[COMPLETION]
            known[1] += row[MONEY]
    return [
        {"key_id": key, "period": period, "tokens": int(tokens), "money": money, "version": to.version}
        for (key, period), (tokens, money) in sorted(sums.items())
    ]


def _dialect(to: Writing) -> str:
    return to.connection.dialect.name


# The statements are built once: building takes longer than running them.


@cache
def _adding(dialect: str, table: sa.Table, group: tuple[str, ...], sums: tuple[str, ...]) -> sa.Insert:
    """Insert rows, or add their sums to the rows that are there."""
    said = _insert(dialect, table)
    changed: dict[str, Any] = {name: table.c[name] + said.excluded[name] for name in sums}
    if "version" in table.c:
        changed["version"] = said.excluded.version
    return said.on_conflict_do_update(index_elements=list(group), set_=changed)


@cache
def _telling(dialect: str) -> sa.Insert:
    said = _insert(dialect, tables.shares)
    changed = {name: said.excluded[name] for name in ("minute", "share", "version")}
    return said.on_conflict_do_update(index_elements=["worker", "key_id"], set_=changed)


@cache
def _enrolling(dialect: str, with_batch: bool) -> Any:
    workers = tables.workers
    said = _insert(dialect, workers)
    changed = {name: said.excluded[name] for name in ("batch", "seen", "version")}
    newer = workers.c.batch < said.excluded.batch if with_batch else None
    return said.on_conflict_do_update(index_elements=["id"], set_=changed, where=newer).returning(workers.c.id)


def _insert(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
