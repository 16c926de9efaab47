"""Adds up in memory what was used, until the store takes it: a row for each minute, key, model, back end, status."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping

from trimtab.gateway.admission import Key
from trimtab.gateway.config import Price
from trimtab.gateway.usage import Record

# Upper bounds in seconds of the classes in which answers are counted by how long they took; one more holds the rest.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
CLASSES = len(BOUNDS) + 1
# What stands where in a row of sums; then come CLASSES counts of whole seconds and CLASSES of first bytes.
SUMS = (
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "uncounted",
    "seconds",
    "first_byte_s",
    "money",
)
PROMPT, COMPLETION, MONEY = (SUMS.index(name) for name in ("prompt_tokens", "completion_tokens", "money"))
_SECONDS, _FIRST = len(SUMS), len(SUMS) + CLASSES
_EMPTY = [0, 0, 0, 0, 0, 0.0, 0.0, 0.0] + [0] * (2 * CLASSES)

MOST_ROWS = 20_000  # while the store cannot be reached; beyond it minutes are added up to hours, then to days
_MILLION = 1e6

Group = tuple[int, str, str, str, str, int]  # start of the minute, key id, model, back end, path, status
Rows = dict[Group, list[float]]


class Tally:
    """The ledger of one worker. Called in the event loop's thread alone."""

    def __init__(self, keys: Mapping[str, Key], prices: Mapping[str, Price] | None = None) -> None:
        self._keys, self._prices = keys, prices or {}
        self._rows: Rows = {}
        self.minute = 0
        self.turn(time.time())

    def turn(self, now: float) -> None:
        """Told the time now and then, so that no request has to ask for it."""
        self.minute = int(now) // 60 * 60

    def price(self, prices: Mapping[str, Price]) -> None:
        """Take other prices; what was used is not priced again."""
        self._prices = prices

    def __call__(self, record: Record) -> None:
        group = (self.minute, record.key, record.model, record.back_end, record.path, record.status)
        row = self._rows.get(group)
        if row is None:
            row = self._rows[group] = _EMPTY.copy()
        prompt, completion = record.prompt_tokens, record.completion_tokens
        seconds, first = record.seconds, record.first_byte_s
        row[0] += 1
        row[1] += prompt
        row[2] += completion
        row[3] += record.cached_tokens
        if not record.counted:
            row[4] += 1
        row[5] += seconds
        row[_SECONDS + bisect_left(BOUNDS, seconds)] += 1
        if first > 0:
            row[6] += first
            row[_FIRST + bisect_left(BOUNDS, first)] += 1
        money = 0.0
        if self._prices:
            money = _cost(
                self._prices.get(record.answered_by or record.model), prompt, record.cached_tokens, completion
            )
            row[7] += money
        key = self._keys.get(record.key)
        if key is not None:
            key.spend(prompt + completion, money)

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, most: int | None = None) -> Rows:
        """The oldest rows, at most so many: the caller's from now on, and no longer fresh at their keys."""
        if most is None or len(self._rows) <= most:
            taken, self._rows = self._rows, {}
        else:
            taken = {group: self._rows.pop(group) for group in list(self._rows)[:most]}
        for (_, id, *_), row in taken.items():
            key = self._keys.get(id)
            if key is not None:
                key.take_off(int(row[PROMPT] + row[COMPLETION]), row[MONEY])
        return taken

    def bound(self) -> None:
        """Keep to MOST_ROWS by adding up minutes to hours or days: sums stay exact."""
        for span in (3600, 86400):
            if len(self._rows) > MOST_ROWS:
                self._rows = folded(self._rows, span)


def folded(rows: Rows, span: int) -> Rows:
    """The rows with their minutes added up to spans of so many seconds."""
    sums: Rows = {}
    for (start, *rest), row in rows.items():
        group: Group = (start // span * span, *rest)  # type: ignore[assignment]
        known = sums.get(group)
        sums[group] = row if known is None else [a + b for a, b in zip(known, row, strict=True)]
    return sums


def _cost(price: Price | None, prompt: int, cached: int, completion: int) -> float:
    if price is None:
        return 0.0
    of_cached = price.prompt if price.cached is None else price.cached
    return ((prompt - cached) * price.prompt + cached * of_cached + completion * price.completion) / _MILLION
