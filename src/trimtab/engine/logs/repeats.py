"""Which lines of a long log need no reading, since lines that differ in their numbers only were read often enough."""

from __future__ import annotations

import re
from collections import deque

OFTEN = 32
"""Lines alike that are read in full: more than are kept of them."""
MOST_KINDS = 20_000
"""Kinds of lines that are read for what they are; of further ones only those that speak of trouble."""
_TROUBLE = re.compile(
    rb"rror|xception|ERROR|CRITICAL|WARN|Traceback|Exit|Interrupt|Failure|Timeout|NotFound|[Kk]illed|[Ff]atal|fault"
    rb"|Abort|terminate|Illegal|GiB"
)
HELD = 100
"""Lines passed over last, which may be a traceback's first when one comes that ends like none before."""
_LIKE_BYTES = 400
_LONG = 32
_DIGITS, _HEXADECIMAL = b"0123456789", b"0123456789abcdef"


class Repeats:
    """Of one start: what the next one tells is new, though it tells the same."""

    def __init__(self) -> None:
        self._read: dict[bytes, int] = {}
        self._held: deque[tuple[int, bytes]] = deque(maxlen=HELD)

    def due(self, number: int, line: bytes) -> tuple[tuple[int, bytes], ...]:
        """The lines to read now: none, or this one after those passed over just before it."""
        like = line[:_LIKE_BYTES].translate(None, _HEXADECIMAL if len(line) > _LONG else _DIGITS)
        times = self._read.get(like, 0)
        many = times == 0 and len(self._read) >= MOST_KINDS
        if times >= OFTEN or (many and _TROUBLE.search(line) is None):
            self._held.append((number, line))
            return ()
        if not many:
            self._read[like] = times + 1
        due = (*self._held, (number, line))
        self._held.clear()
        return due
