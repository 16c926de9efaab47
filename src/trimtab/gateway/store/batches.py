"""Write down what a worker used: each batch in one transaction and, however often it is sent, counted once."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from trimtab.gateway.admission import Share
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Writing
from trimtab.gateway.tally import SUMS, Rows

_PROMPT, _COMPLETION, _MONEY = (SUMS.index(n) for n in ("prompt_tokens", "completion_tokens", "money"))


class Batch(msgspec.Struct, frozen=True):
    """Rows of the tally under the number that they are known by; numbers of one worker rise."""

    number: int
    rows: Rows


def enrol(to: Writing, worker: str, name: str, batch: int = 0) -> bool:
    """Say that a worker is there and which batch it brings; False when the store has that batch already."""
    workers = tables.workers
    row = {"id": worker, "name": name, "batch": batch, "seen": time.time(), "version": to.version}
    said = _insert(to, workers).values(row)
    said = said.on_conflict_do_update(
        index_elements=[workers.c.id], set_={c: said.excluded[c] for c in ("batch", "seen", "version")},
        where=workers.c.batch < said.excluded.batch if batch else None,
    )  # fmt: skip
    return to.connection.execute(said.returning(workers.c.id)).first() is not None


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
    _add(to, tables.spent, ("key_id", "period"), ("tokens", "money"), _spent(to, batch))
    return True


def add_usage(to: Writing, rows: Rows) -> None:
    """Add rows of the tally to those that are there."""
    named = [
        dict(zip(tables.GROUP, group, strict=True)) | dict(zip(tables.COUNTS, row, strict=True))
        for group, row in sorted(rows.items())
    ]
    _add(to, tables.usage, tables.GROUP, tables.COUNTS, named)


def tell(to: Writing, worker: str, shares: dict[str, Share]) -> None:
    """Tell the other workers what this one counts."""
    if not shares:
        return
    rows = [
        {"worker": worker, "key_id": key, "minute": share.minute, "share": msgspec.json.encode(share).decode(),
         "version": to.version}
        for key, share in sorted(shares.items())
    ]  # fmt: skip
    said = _insert(to, tables.shares)
    changed = {c: said.excluded[c] for c in ("minute", "share", "version")}
    to.connection.execute(said.on_conflict_do_update(index_elements=["worker", "key_id"], set_=changed), rows)


def periods(start: float) -> tuple[str, str]:
    """The day and the month of a time, UTC."""
    day = time.strftime("%Y-%m-%d", time.gmtime(start))
    return day, day[:7]


def _spent(to: Writing, batch: Batch) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], list[float]] = {}
    for (start, key, *_), row in batch.rows.items():
        for period in periods(start):
            known = sums.setdefault((key, period), [0, 0.0])
            known[0] += row[_PROMPT] + row[_COMPLETION]
            known[1] += row[_MONEY]
    return [
        {"key_id": key, "period": period, "tokens": int(tokens), "money": money, "version": to.version}
        for (key, period), (tokens, money) in sorted(sums.items())
    ]


def _add(
    to: Writing, table: sa.Table, group: tuple[str, ...], sums: tuple[str, ...], rows: list[dict[str, Any]]
) -> None:
    """Insert the rows, or add their sums to the rows that are there."""
    said = _insert(to, table)
    changed: dict[str, Any] = {name: table.c[name] + said.excluded[name] for name in sums}
    if "version" in table.c:
        changed["version"] = said.excluded.version
    to.connection.execute(said.on_conflict_do_update(index_elements=list(group), set_=changed), rows)


def _insert(to: Writing, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    if to.connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
