"""A head that was parsed once and comes again: known by its bytes, whatever its Content-Length says."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
_LENGTHS = (b"\r\nContent-Length: ", b"\r\ncontent-length: ")


class Seen(Generic[T]):
    """The bytes of a head around the digits of its length; `about` is what parsing it found out."""

    __slots__ = ("_after", "_before", "_size", "about")

    def __init__(self, before: bytes, after: bytes, about: T) -> None:
        self._before, self._after, self.about = before, after, about
        self._size = len(before) + len(after)

    def body_of(self, data: bytes) -> bytes | None:
        """The body, when `data` is this head and exactly the body that it announces."""
        rest = len(data) - self._size  # the body and the digits of its length
        length = rest - len(str(rest))
        head = b"%b%d%b" % (self._before, length, self._after)
        return data[len(head) :] if len(head) + length == len(data) and data.startswith(head) else None


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
