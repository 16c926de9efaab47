"""What was used, added up by key, model, back end, path, status, day, or several of them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store
from trimtab.gateway.tally import BOUNDS

DAY_S = 86400
BY = ("key", "model", "back_end", "path", "status", "day", "owner", "plan")
_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    "key": tables.usage.c.key_id,
    "model": tables.usage.c.model,
    "back_end": tables.usage.c.back_end,
    "path": tables.usage.c.path,
    "status": tables.usage.c.status,
    "day": tables.usage.c.start - tables.usage.c.start % DAY_S,
    "owner": tables.keys.c.owner,
    "plan": tables.keys.c.plan,
}


class Used(msgspec.Struct, frozen=True):
    """Sums over one group; `group` holds the values of what was asked for, a day as 2026-11-30.

    Quantiles are read off classes, so they are right to the bounds of one; None without any answer.
    """

    group: Mapping[str, str]
    label: str  # of the key, where the group is one key's
    requests: int
    failed: int  # answered with 400 or more
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    uncounted: int  # requests of which the back end told no tokens
    money: float
    seconds_mean: float
    seconds_p50: float | None
    seconds_p95: float | None
    first_byte_p50: float | None
    first_byte_p95: float | None


def used(
    store: Store, by: Sequence[str], since: float = 0.0, until: float = math.inf, key: str | None = None
) -> list[Used]:
    """The sums from `since` (taken down to its minute) to before `until`, sorted by group."""
    usage, keys = tables.usage, tables.keys
    groups = [_COLUMNS[name].label(f"by_{name}") for name in by]
    failed = sa.func.sum(sa.case((usage.c.status >= 400, usage.c.requests), else_=0)).label("failed")
    sums = [sa.func.sum(usage.c[name]).label(name) for name in tables.COUNTS]
    label = sa.func.max(keys.c.label).label("label")
    chosen: sa.Select[Any] = sa.select(*groups, failed, label, *sums).outerjoin(keys, keys.c.id == usage.c.key_id)
    chosen = chosen.where(usage.c.start >= int(since) // 60 * 60)
    if until < math.inf:
        chosen = chosen.where(usage.c.start < until)
    if key is not None:
        chosen = chosen.where(usage.c.key_id == key)
    if groups:
        chosen = chosen.group_by(*(_COLUMNS[name] for name in by)).order_by(*groups)
    with store.reading() as connection:
        return [_used(row, by) for row in connection.execute(chosen) if row.requests]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The value below which `share` of what the classes of BOUNDS count lies; within one it is spread evenly."""
    rank, below = share * sum(counts), 0
    if not sum(counts):
        return None
    for at, count in enumerate(counts):
        if count and below + count >= rank:
            low = BOUNDS[at - 1] if at else 0.0
            high = BOUNDS[at] if at < len(BOUNDS) else low
            return low + (high - low) * (rank - below) / count
        below += count
    return BOUNDS[-1]


def _used(row: sa.Row[Any], by: Sequence[str]) -> Used:
    spread = [int(getattr(row, name)) for name in tables.SPREAD]
    whole, first = spread[: len(spread) // 2], spread[len(spread) // 2 :]
    group = {name: _shown(name, getattr(row, f"by_{name}")) for name in by}
    return Used(
        group, (row.label or "") if "key" in by else "", int(row.requests), int(row.failed), int(row.prompt_tokens),
        int(row.completion_tokens), int(row.cached_tokens), int(row.uncounted), float(row.money),
        float(row.seconds) / int(row.requests), quantile(whole, 0.5), quantile(whole, 0.95), quantile(first, 0.5),
        quantile(first, 0.95),
    )  # fmt: skip


def _shown(name: str, value: object) -> str:
    if name == "day":
        return time.strftime("%Y-%m-%d", time.gmtime(int(str(value))))
    return "" if value is None else str(value)
