"""What was used, added up in memory."""

from __future__ import annotations

import pytest

from trimtab.gateway import tally
from trimtab.gateway.admission import Key
from trimtab.gateway.config import Price
from trimtab.gateway.tally import SUMS, Tally, folded
from trimtab.gateway.usage import Record

MINUTE = 1_800_000_000 // 60 * 60


def record(
    key: str = "k", status: int = 200, seconds: float = 0.2, first: float = 0.06, counted: bool = True
) -> Record:
    return Record(key, "m", "b", "/chat/completions", status, 100, 20, 40, seconds, first, counted)


def sums(row: list[float]) -> dict[str, float]:
    return dict(zip(SUMS, row, strict=False))


def test_one_row_for_each_minute_key_and_status() -> None:
    add = Tally({})
    add.turn(MINUTE + 1)
    add(record()), add(record(seconds=500.0, first=0.0, counted=False)), add(record(status=499))
    add.turn(MINUTE + 60)
    add(record())
    assert len(add) == 3
    rows = add.take()
    assert len(add) == 0
    row = rows[MINUTE, "k", "m", "b", "/chat/completions", 200]
    assert sums(row) == {
        "requests": 2, "prompt_tokens": 200, "completion_tokens": 40, "cached_tokens": 80, "uncounted": 1,
        "seconds": 500.2, "first_byte_s": 0.06, "money": 0.0,
    }  # fmt: skip
    whole, first = row[len(SUMS) :][: tally.CLASSES], row[len(SUMS) :][tally.CLASSES :]
    assert (whole[2], whole[-1], sum(whole)) == (1, 1, 2)
    assert (first[1], sum(first)) == (1, 1)  # what never began took no time to begin


def test_money_by_the_price_of_a_million_tokens() -> None:
    key = Key("k")
    add = Tally({"k": key}, {"m": Price(prompt=2.0, completion=10.0, cached=0.5)})
    add(record())
    assert (key.fresh_tokens, key.flying_tokens) == (120, 0)
    [row] = add.take().values()
    money = (60 * 2.0 + 40 * 0.5 + 20 * 10.0) / 1e6
    assert sums(row)["money"] == pytest.approx(money)
    assert (key.fresh_tokens, key.fresh_money) == (0, 0.0)
    assert (key.flying_tokens, key.flying_money) == (120, pytest.approx(money))
    add.price({"m": Price(prompt=1.0)})
    add(record())
    [row] = add.take().values()
    assert sums(row)["money"] == pytest.approx(100e-6)


def test_a_fall_back_is_paid_by_its_own_price() -> None:
    key = Key("k")
    add = Tally({"k": key}, {"m": Price(prompt=2.0), "cloud": Price(prompt=30.0)})
    for answered_by, price in (("", 2.0), ("cloud", 30.0), ("without-a-price", 0.0)):
        told = record()
        told.answered_by = answered_by
        add(told)
        [(group, row)] = add.take().items()
        assert group[2] == "m"  # what was asked for
        assert sums(row)["money"] == pytest.approx(100 * price / 1e6)


def test_many_rows_become_hours_with_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_ROWS", 100)
    add = Tally({})
    for minute in range(48 * 60):
        add.turn(MINUTE + minute * 60)
        add(record())
        add.bound()
    assert len(add) <= 101
    rows = add.take()
    assert sum(row[0] for row in rows.values()) == 48 * 60
    days = folded(rows, 86400)
    assert sum(row[1] for row in days.values()) == 48 * 60 * 100
    assert {start % 86400 for start, *_ in days} == {0}


def test_some_rows_may_be_taken_before_others() -> None:
    key = Key("k")
    add = Tally({"k": key})
    for minute in range(5):
        add.turn(MINUTE + minute * 60)
        add(record())
    first = add.take(2)
    assert [start for start, *_ in first] == [MINUTE, MINUTE + 60]
    assert (key.fresh_tokens, key.flying_tokens, len(add)) == (360, 240, 3)
    assert len(add.take(10)) == 3
