"""A head that was parsed once and comes again: known by its bytes, whatever its Content-Length says."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
_LENGTHS = (b"\r\nContent-Length: ", b"\r\ncontent-length: ")
_DIGITS = 9


class Seen(Generic[T]):
    """The bytes of a head around the digits of its length; `about` is what parsing it found out."""

    __slots__ = ("_after", "_before", "about")

    def __init__(self, before: bytes, after: bytes, about: T) -> None:
        self._before, self._after, self.about = before, after, about

    def body_of(self, data: bytes) -> bytes | None:
        """The body, when `data` is this head and exactly the body that it announces."""
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        start = len(before)
        end = data.find(b"\r", start, start + _DIGITS + 1)
        if end < 0 or not data.startswith(after, end):
            return None
        digits, body = data[start:end], data[end + len(after) :]
        return body if digits.isdigit() and int(digits) == len(body) else None


def seen(data: bytes, body: bytes, about: T) -> Seen[T] | None:
    """Remember the head of `data`, a whole message that the parser took: one head with a length, then `body`."""
    head = data[: len(data) - len(body)]
    if head.find(b"\r\n\r\n") != len(head) - 4 or not data.endswith(body):
        return None
    for name in _LENGTHS:
        at = head.find(name)
        if at > 0:
            start = at + len(name)
            end = head.find(b"\r", start)
            digits = head[start:end]
            return Seen(head[:start], head[end:], about) if digits == b"%d" % len(body) else None
    return None
