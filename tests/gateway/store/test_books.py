"""Usage in the store: counted once, added up, made smaller when it is old. On both engines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from trimtab.errors import HostError
from trimtab.gateway.config import Price
from trimtab.gateway.store import tables
from trimtab.gateway.store.batches import Batch, enrol, write
from trimtab.gateway.store.changes import changes
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.keys import Wish, create_key
from trimtab.gateway.store.reports import quantile, used
from trimtab.gateway.store.tidying import MINUTES_KEPT_S, tidy
from trimtab.gateway.tally import BOUNDS, Tally
from trimtab.gateway.usage import Record

NOW = 1_796_000_000.0


def batch(number: int, *records: Record, at: float = NOW) -> Batch:
    tally = Tally({}, {"m": Price(prompt=1e6)})
    tally.turn(at)
    for record in records:
        tally(record)
    return Batch(number, tally.take())


def record(
    key: str = "k", model: str = "m", back_end: str = "b", status: int = 200, tokens: int = 10, seconds: float = 0.3
) -> Record:
    return Record(key, model, back_end, "/chat/completions", status, tokens, 5, 1, seconds, 0.07, True)


def sent(store: Store, worker: str, this: Batch) -> bool:
    with store.writing() as to:
        return write(to, worker, "host:1", this)


def test_a_batch_that_comes_twice_is_counted_once(store: Store) -> None:
    first, second = batch(1, record(), record()), batch(2, record())
    assert sent(store, "w", first)
    assert not sent(store, "w", first)
    assert sent(store, "w", second)
    assert not sent(store, "w", first)
    assert sent(store, "another", batch(1, record()))
    [sums] = used(store, ())
    assert (sums.requests, sums.prompt_tokens, sums.completion_tokens, sums.cached_tokens) == (4, 40, 20, 4)
    spent = changes(store, 0, NOW).spent["k"]
    assert (spent.day_tokens, spent.month_tokens, spent.day_money) == (60, 60, 40.0)


def test_a_batch_comes_whole_or_not_at_all(store: Store) -> None:
    def broken() -> None:
        with store.writing() as to:
            write(to, "w", "host:1", batch(1, record()))
            to.connection.execute(sa.text("SELECT * FROM missing"))

    with pytest.raises(HostError, match=r"no such table|does not exist"):
        broken()
    assert used(store, ()) == []
    assert sent(store, "w", batch(1, record()))


def test_a_worker_is_greeted_without_its_batches_being_forgotten(store: Store) -> None:
    sent(store, "w", batch(7, record()))
    with store.writing() as to:
        assert not enrol(to, "w", "host:1", 7)
    assert changes(store, 0, NOW, "other").workers == ("w",)
    assert changes(store, 0, NOW, "w").workers == ()


def test_sums_by_key_model_back_end_and_day(store: Store) -> None:
    key = create_key(store, Wish("bob", "research")).key.id
    day = 86400
    sent(store, "w", batch(1, record(key), record(key, "n", "c", 503), record("gone", tokens=1)))
    sent(store, "w", batch(2, record(key, tokens=100), at=NOW + day))
    by_key = {sums.group["key"]: sums for sums in used(store, ["key"])}
    assert (by_key[key].requests, by_key[key].failed, by_key[key].label) == (3, 1, "bob")
    assert (by_key["gone"].requests, by_key["gone"].label) == (1, "")
    models = [(s.group["model"], s.group["back_end"], s.requests) for s in used(store, ["model", "back_end"])]
    assert models == [("m", "b", 3), ("n", "c", 1)]
    days = [(s.group["day"], s.prompt_tokens) for s in used(store, ["day"], key=key)]
    assert days == [("2026-11-30", 20), ("2026-12-01", 100)]
    assert {s.group["owner"] for s in used(store, ["owner"])} == {"research", ""}
    assert [s.requests for s in used(store, (), since=NOW + day - 3600)] == [1]
    assert [s.requests for s in used(store, (), until=NOW + 3600)] == [3]


def test_what_was_spent_is_told_of_its_own_day_and_month(store: Store) -> None:
    sent(store, "w", batch(1, record(tokens=95)))
    sent(store, "w", batch(2, record(tokens=995), at=NOW + 86400))
    assert changes(store, 0, NOW).spent["k"].day_tokens == 100
    spent = changes(store, 0, NOW + 86400).spent["k"]
    assert (spent.day_tokens, spent.month_tokens) == (1000, 1000)  # it is December


def test_quantiles_lie_within_the_classes(store: Store) -> None:
    sent(store, "w", batch(1, *(record(seconds=n / 100) for n in range(1, 101))))
    [sums] = used(store, ())
    assert sums.seconds_p50 == pytest.approx(0.5, abs=0.01)
    assert sums.seconds_p95 == pytest.approx(0.95, abs=0.01)
    assert sums.seconds_mean == pytest.approx(0.505)
    assert quantile([0] * (len(BOUNDS) + 1), 0.5) is None
    assert quantile([0] * len(BOUNDS) + [3], 0.5) == BOUNDS[-1]


def test_old_minutes_become_a_day_with_the_same_sums(store: Store) -> None:
    old = NOW - MINUTES_KEPT_S - 2 * 86400
    for number in range(1, 6):
        sent(store, "w", batch(number, record(), record(), at=old + number * 1800))
    sent(store, "w", batch(6, record(), at=NOW))
    before = used(store, ["key", "day"])
    tidy(store, NOW)
    with store.reading() as connection:
        starts = connection.execute(sa.select(tables.usage.c.start).order_by(tables.usage.c.start)).scalars().all()
    assert starts == [old // 86400 * 86400, NOW // 60 * 60]
    assert used(store, ["key", "day"]) == before
    assert sent(store, "w", batch(7, record(), at=old))  # late usage of such a day still counts
    tidy(store, NOW)
    assert sum(sums.requests for sums in used(store, ())) == 12


def test_a_store_put_back_to_an_earlier_state_is_read_anew(store: Store, tmp_path: Path) -> None:
    create_key(store, Wish("k"))
    version = changes(store, 0, time.time()).version
    assert [change.label for change in changes(store, version + 100, time.time()).keys] == ["k"]
