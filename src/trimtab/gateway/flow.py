"""What happens to an answer's bytes on their way: usage read, the model's name put back, words translated."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import msgspec

from trimtab.gateway.routes import Stream
from trimtab.gateway.usage import Names, StreamUsage, Usage

HELD = 1 << 20  # bytes


class Flow(Protocol):
    """The bytes of one answer. `whole`: they go to the client when all are there."""

    whole: bool

    def pass_on(self, piece: bytes) -> bytes:
        """What the client may have now."""

    def rest(self) -> bytes:
        """What was held back, when the answer has ended as it should."""

    def usage(self) -> Usage | None:
        """What the back end told."""


class Renamed:
    """The caller's name of the model in place of the back end's: in each piece of a stream, or in a whole body.

    A body of more than HELD bytes goes on as it comes, and only its first piece is looked at. The bytes
    `"model":"..."` stand in no text of valid JSON, where a quote is escaped.
    """

    __slots__ = ("_held", "_pairs", "_streamed", "inner", "whole")

    def __init__(self, inner: Flow, there: str, here: str, *, streamed: bool, length: int) -> None:
        """`length` of the body, -1 where it is not known."""
        self._pairs = names(there, here)
        self._held: list[bytes] | None = None if streamed or length > HELD else []
        self.inner, self._streamed, self.whole = inner, streamed, inner.whole or self._held is not None

    def pass_on(self, piece: bytes) -> bytes:
        """What the client may have now."""
        data = self.inner.pass_on(piece)
        if self._held is None:
            return self._put_back(data)
        self._held.append(data)
        return b""

    def rest(self) -> bytes:
        """What was held back."""
        rest = self.inner.rest()
        return self._put_back(rest if self._held is None else b"".join([*self._held, rest]))

    def usage(self) -> Usage | None:
        """What the back end told."""
        return self.inner.usage()

    def _put_back(self, data: bytes) -> bytes:
        if not data or not self._pairs:
            return data
        for there, here in self._pairs:
            data = data.replace(there, here)
        if not self._streamed:
            self._pairs = ()
        return data


def renamed(body: bytes, there: str, here: str) -> bytes:
    """A whole body with the caller's name of the model."""
    for name, other in names(there, here):
        if name in body:
            return body.replace(name, other)
    return body


_NUMBER = re.compile(rb'"sequence_number": ?(\d+)')


def next_number(flow: Flow | None) -> int:
    """How a response's stream would number its next event, by what passed."""
    if isinstance(flow, Renamed):
        return next_number(flow.inner)
    found = _NUMBER.findall(flow.last) if isinstance(flow, StreamUsage | Translated) else []
    return int(found[-1]) + 1 if found else 0


_LAST_EVENT = re.compile(
    rb"(?:^|\n)(?:event: ?(?:response\.completed|response\.incomplete|message_stop)\r?\n|data: ?\[DONE\])"
)


def has_said_all(flow: Flow | None) -> bool:
    """Whether the last event of a stream has passed: a client may leave then (Codex does) and has its whole answer."""
    if isinstance(flow, Renamed):
        return has_said_all(flow.inner)
    return isinstance(flow, StreamUsage | Translated) and _LAST_EVENT.search(flow.last) is not None


@lru_cache(maxsize=1024)
def names(there: str, here: str) -> Names:
    """Each way in which the back end may write its model's name, and what the caller gets in its place."""
    if there == here:
        return ()
    known, other = msgspec.json.encode(there), msgspec.json.encode(here)
    return tuple((b'"model":' + blank + known, b'"model":' + blank + other) for blank in (b"", b" "))


class Translated:
    """A stream in the words of another protocol."""

    __slots__ = ("_inner", "_stream", "last", "whole")

    def __init__(self, inner: Flow, stream: Stream) -> None:
        self._inner, self._stream, self.last, self.whole = inner, stream, b"", False

    def pass_on(self, piece: bytes) -> bytes:
        """What the client may have now."""
        out = self._stream.feed(self._inner.pass_on(piece))
        self.last = out or self.last
        return out

    def rest(self) -> bytes:
        """What was held back."""
        return self._stream.feed(self._inner.rest()) + self._stream.end()

    def usage(self) -> Usage | None:
        """What the back end told."""
        return self._inner.usage()


class Held:
    """A body that is changed as a whole."""

    __slots__ = ("_change", "_inner", "_pieces", "whole")

    def __init__(self, inner: Flow | None, change: Callable[[bytes], bytes]) -> None:
        self._inner, self._change, self._pieces, self.whole = inner, change, [b""], True

    def pass_on(self, piece: bytes) -> bytes:
        """Nothing yet."""
        self._pieces.append(piece if self._inner is None else self._inner.pass_on(piece))
        return b""

    def rest(self) -> bytes:
        """The changed body."""
        return self._change(b"".join(self._pieces))

    def usage(self) -> Usage | None:
        """What the back end told."""
        return None if self._inner is None else self._inner.usage()


class Plain:
    """Nothing is read or changed: an error as the back end words it."""

    __slots__ = ("whole",)

    def __init__(self) -> None:
        self.whole = False

    def pass_on(self, piece: bytes) -> bytes:
        """The piece."""
        return piece

    def rest(self) -> bytes:
        """Nothing."""
        return b""

    def usage(self) -> Usage | None:
        """Nothing."""
        return None
