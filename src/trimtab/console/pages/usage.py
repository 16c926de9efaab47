"""Usage: what was asked of the models, by day, model and key, as tables, as a picture and as CSV."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence

import msgspec

from trimtab.console.asked import Asked, House, Shown
from trimtab.gateway.store.reports import DAY_S, Used, used
from trimtab.messages import msg

SPANS = (1, 7, 30, 90)  # days that may be chosen
USUAL = 30
MOST_ROWS = 100  # of a table; the CSV has all
WIDTH, HEIGHT = 900, 160  # of the picture, in its own units
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins so


class Bar(msgspec.Struct, frozen=True):
    """A day's tokens in the picture: heights in its units, answers on top of prompts."""

    day: str
    x: float
    width: float
    prompt: float
    completion: float
    tokens: int


class UsagePage(msgspec.Struct, frozen=True):
    """The page: sums since the begin of a day (UTC), the largest first but for days."""

    days: int
    spans: tuple[int, ...]
    total: Used | None
    by_day: tuple[Used, ...]
    by_model: tuple[Used, ...]
    by_key: tuple[Used, ...]
    bars: tuple[Bar, ...]
    left_out: int = 0  # rows of tables that are too long
    fault: str = ""


def show(house: House, asked: Asked) -> Shown:
    """The sums of the days that the address names."""
    days, fault = _days(asked)
    since = _since(asked, days)
    by_model, by_key = (sorted(used(house.store, [by], since), key=_tokens, reverse=True) for by in ("model", "key"))
    by_day = used(house.store, ["day"], since)
    total = used(house.store, [], since)
    left_out = sum(max(0, len(rows) - MOST_ROWS) for rows in (by_model, by_key))
    page = UsagePage(
        days, SPANS, total[0] if total else None, tuple(by_day), tuple(by_model[:MOST_ROWS]),
        tuple(by_key[:MOST_ROWS]), _bars(by_day, since, days), left_out,
        msg("{text} is no number of days here: 1, 7, 30 or 90.", text=repr(asked.query["days"][:20])).text(asked.lang)
        if fault else "",
    )  # fmt: skip
    return Shown(page, 400 if fault else 200)


def table(house: House, asked: Asked) -> str:
    """The same as CSV: a row for each day, key and model."""
    out = io.StringIO()
    rows = csv.writer(out)
    fields = ("requests", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "uncounted", "money")
    rows.writerow(["day", "key", "label", "model", *fields])
    for row in used(house.store, ["day", "key", "model"], _since(asked, _days(asked)[0])):
        names = [row.group["day"], row.group["key"], row.label, row.group["model"]]
        rows.writerow([*(_plain(name) for name in names), *(getattr(row, field) for field in fields)])
    return out.getvalue()


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _days(asked: Asked) -> tuple[int, bool]:
    """The span, and whether what was asked for is none."""
    text = asked.query.get("days", str(USUAL))
    return (int(text), False) if text in map(str, SPANS) else (USUAL, True)


def _since(asked: Asked, days: int) -> float:
    return float(int(asked.now) // DAY_S * DAY_S - (days - 1) * DAY_S)


def _tokens(row: Used) -> tuple[int, int]:
    return row.prompt_tokens + row.completion_tokens, row.requests


def _bars(rows: Sequence[Used], since: float, days: int) -> tuple[Bar, ...]:
    most = max((_tokens(row)[0] for row in rows), default=0)
    if not most:
        return ()
    step, found = WIDTH / days, []
    names = {_name(since, n): n for n in range(days)}
    for row in rows:
        at = names.get(row.group["day"])
        if at is not None:
            prompt, completion = (round(n / most * HEIGHT, 2) for n in (row.prompt_tokens, row.completion_tokens))
            place = round(at * step, 2), round(step * 0.8, 2)
            found.append(Bar(row.group["day"], *place, prompt, completion, _tokens(row)[0]))
    return tuple(found)


def _name(since: float, day: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(since + day * DAY_S))
