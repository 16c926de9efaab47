"""Which lines of a long log need no reading, since lines that differ in their numbers only were read often enough."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

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
_PREFIX_BYTES = 160
MOST_SAME = 8192
"""Lines remembered to the letter of those that are passed over: the frames of tracebacks, again and again."""
_SEVENTH = 7
"""Of lines passed over only each seventh is remembered: what comes again is soon met, what does not costs little."""
_DIGITS, _HEXADECIMAL = b"0123456789", b"0123456789abcdef"


class Repeats:
    """Of one start: what the next one tells is new, though it tells the same."""

    def __init__(self) -> None:
        self._read: dict[bytes, int] = {}
        self._same: set[bytes] = set()
        self._held: deque[tuple[int, bytes]] = deque(maxlen=HELD)

    def due(self, first: int, lines: Sequence[bytes], quiet: tuple[bytes, ...] = ()) -> list[tuple[int, bytes]]:
        """The lines to read now, each after those passed over just before it, of `lines` from the number `first` on.

        `quiet` are the beginnings of INFO and DEBUG lines, which are never read. A loop of one body, without calls:
        it is passed ten million times a gigabyte.
        """
        due: list[tuple[int, bytes]] = []
        read, same = self._read, self._same
        passed: deque[int] = deque(maxlen=HELD)  # places in `lines`
        for at, line in enumerate(lines):
            if line in same:
                passed.append(at)
                continue
            if not line or line.startswith(quiet) or _quiet_inside(line):
                continue
            like = line[:_LIKE_BYTES].translate(None, _HEXADECIMAL if len(line) > _LONG else _DIGITS)
            times = read.get(like, 0)
            many = times == 0 and len(read) >= MOST_KINDS
            if times >= OFTEN or (many and _TROUBLE.search(line) is None):
                passed.append(at)
                if at % _SEVENTH == 0 and len(line) <= _LIKE_BYTES:
                    if len(same) >= MOST_SAME:
                        same.clear()
                    same.add(line)
                continue
            if not many:
                read[like] = times + 1
            self._hold(first, lines, passed)
            due += (*self._held, (first + at, line))
            self._held.clear()
        self._hold(first, lines, passed)
        return due

    def _hold(self, first: int, lines: Sequence[bytes], passed: deque[int]) -> None:
        self._held.extend((first + at, lines[at]) for at in passed)
        passed.clear()


def _quiet_inside(line: bytes) -> bool:
    """Whether INFO or DEBUG stands in the prefix, after a clock or a container's name; a single letter is found soonest
    where there is none."""
    return (_N in line and b" INFO" in line[:_PREFIX_BYTES]) or (_G in line and b" DEBUG " in line[:_PREFIX_BYTES])


_N, _G = b"NG"
