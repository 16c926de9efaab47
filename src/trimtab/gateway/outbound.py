"""A connection to a back end: one request at a time out, the answer in pieces in; and the pool of idle connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from typing import Protocol, cast

import httptools
import msgspec

from trimtab.gateway.heads import Seen, seen
from trimtab.gateway.request import LOWER, REASONS, lowered
from trimtab.gateway.turn import turn

MAX_ANSWER_HEAD = 64 << 10
HIGH_WATER = 1 << 20
# Header lines of an answer that are the connection's or the provider's account, not the client's.
OWN = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"trailer",
     b"proxy-authenticate", b"proxy-connection", b"www-authenticate", b"server", b"date", b"set-cookie",
     b"alt-svc", b"x-request-id", b"request-id", b"strict-transport-security", b"openai-organization",
     b"openai-project"}
)  # fmt: skip


class Told:
    """The head of an answer: `headers` are those for the client, names in lower case; `text`: they as bytes."""

    __slots__ = ("headers", "is_events", "is_json", "status", "text")

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers
        kind = next((value for name, value in reversed(headers) if name == b"content-type"), b"").lower()
        self.is_json, self.is_events = b"json" in kind, kind.startswith(b"text/event-stream")
        line = b"HTTP/1.1 %d %b" % (status, REASONS.get(status, "Status").encode())
        self.text = b"".join([line, *[b"\r\n%b: %b" % header for header in headers]])


class Receiving(Protocol):
    """Who takes an answer."""

    def answer_begins(self, connection: Outbound) -> None:
        """Status and headers are there: `connection.told`, `.length`."""

    def answer_piece(self, data: bytes) -> None:
        """Body bytes, as they came; none when only the head came."""

    def answer_ends(self, last: bytes) -> None:
        """The answer is whole with these bytes. The connection is idle again, or gone."""

    def answer_breaks(self, reason: str) -> None:
        """The connection was lost, or what came is no HTTP, before the answer was whole."""


class Address(msgspec.Struct, frozen=True):
    """Where a back end listens."""

    host: str
    port: int
    tls: bool = False


@cache
def _trust() -> ssl.SSLContext:
    """The system's certificates, or those that SSL_CERT_FILE names; reading them takes tens of milliseconds."""
    return ssl.create_default_context()


class Outbound(asyncio.Protocol):
    """One connection. `send` gives it a request; the receiver's calls come in the event loop's thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append  # the parser calls it without a word of ours between
        self._parser = httptools.HttpResponseParser(self)
        self.receiver: Receiving | None = None
        self._complete = self._begun = self._reusable = self._chunked = self._paused = False
        self._head_size = 0
        self.used = 0  # requests sent so far: a first failure on a reused connection is the idle time-out's
        self.spoke = False  # whether a byte of the answer came
        self.status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self.told = Told(0, [])
        self.length = -1  # bytes of the body when told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._turn = turn()

    def send(self, data: bytes, receiver: Receiving) -> None:
        """Send one request; its answer goes to `receiver`."""
        self.receiver = receiver
        self._complete = self._begun = self.spoke = False
        self.status, self.length = 0, -1
        self.used += 1
        if self._transport is None:  # lost since it was made
            asyncio.get_running_loop().call_soon(self._broken, "the connection was lost")
            return
        self._turn.write(self._transport, data)  # if it closes before, connection_lost tells the receiver

    def data_received(self, data: bytes) -> None:
        if self.receiver is None:  # an idle connection must be silent
            self._drop()
            return
        fresh, self.spoke = not self.spoke, True
        if fresh and (known := self._pool.seen) is not None and (body := known.body_of(data)) is not None:
            self._take_again(known.about, body)
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self._broken(f"it is no valid HTTP ({error})")
                return
            self._reusable = False  # the answer is whole; what follows it is nothing that was asked for
        if self.status < 200:
            return
        if not self._begun:
            self._begun = True
            self.receiver.answer_begins(self)
        pieces = self._pieces
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        receiver = self.receiver  # who took the head; none if the answer was not wanted
        if receiver is None:
            return
        if not self._complete:
            receiver.answer_piece(piece)
            return
        if fresh and self._reusable and self.status == 200:
            self._pool.seen = seen(data, piece, self.told) or self._pool.seen
        self._release(receiver, piece)

    def _take_again(self, told: Told, body: bytes) -> None:
        """A whole answer with a head that was seen before, between two messages of the parser."""
        self.told, self.status, self.length = told, told.status, len(body)
        self._complete = self._begun = self._reusable = True
        self._chunked = False
        if self.receiver is not None:
            self.receiver.answer_begins(self)
        if self.receiver is not None:
            self._release(self.receiver, body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        del self._parser, self.on_body  # each points back at this: without them it goes at once, not when gc comes by
        self._pool.gone(self)
        receiver, self.receiver = self.receiver, None
        if receiver is None:
            return
        if self._begun and self.length < 0 and not self._chunked and exc is None:
            receiver.answer_ends(b"")  # the end of the connection is the end of the body
        else:
            receiver.answer_breaks("the connection was lost" if exc is None else f"the connection was lost ({exc})")

    # httptools

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("more than one answer")
        self.status, self._headers, self.length, self._head_size, self._chunked = 0, [], -1, 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + 4
        if self._head_size > MAX_ANSWER_HEAD:
            raise ValueError("too many headers")
        name = LOWER.get(name) or lowered(name)
        if name not in OWN:
            self._headers.append((name, value))
        elif name == b"content-length":
            self.length = int(value)
        elif name == b"transfer-encoding":
            self._chunked = value.lower().endswith(b"chunked")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.told = Told(self.status, self._headers)

    def on_message_complete(self) -> None:
        self._complete = self.status >= 200
        self._reusable = self._parser.should_keep_alive()  # only here it says the right thing

    # for the one who asked

    @property
    def whole(self) -> bool:
        """Whether all of the answer is there."""
        return self._complete

    def pause(self, pause: bool) -> None:
        """Stop reading the answer (True), or go on."""
        if self._transport is None or pause is self._paused or self._transport.is_closing():
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abandon(self) -> None:
        """Nobody waits for the answer any more: the connection is cut, which a model server takes as a cancellation."""
        self.receiver = None
        self._drop()

    def _release(self, receiver: Receiving, last: bytes) -> None:
        self.receiver = None
        if self._paused:
            self.pause(False)
        if self._reusable and self._transport is not None:
            self._pool.give_back(self)
        else:
            self._drop()
        receiver.answer_ends(last)

    def _broken(self, reason: str) -> None:
        receiver, self.receiver = self.receiver, None
        self._drop()
        if receiver is not None:
            receiver.answer_breaks(reason)

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Pool:
    """The connections to one address: idle ones are used again, the last used first."""

    def __init__(self, address: Address, *, keep: int = 256) -> None:
        self.address = address
        self._keep = keep
        self._idle: list[Outbound] = []
        self._retired = False
        self.seen: Seen[Told] | None = None  # the latest head of a whole answer

    def take(self) -> Outbound | None:
        """An idle connection."""
        return self._idle.pop() if self._idle else None

    async def dial(self, timeout_s: float) -> Outbound:
        """A new connection. OSError, or TimeoutError after `timeout_s`."""
        loop = asyncio.get_running_loop()
        where = self.address
        made: Callable[[], Outbound] = lambda: Outbound(self)  # noqa: E731
        async with asyncio.timeout(timeout_s):
            trust = _trust() if where.tls else None
            _, connection = await loop.create_connection(made, where.host, where.port, ssl=trust)
        return connection

    def give_back(self, connection: Outbound) -> None:
        """A connection whose answer is whole."""
        if len(self._idle) < self._keep and not self._retired:
            self._idle.append(connection)
        else:
            connection.abandon()

    def gone(self, connection: Outbound) -> None:
        """A connection that was lost."""
        if connection in self._idle:
            self._idle.remove(connection)

    def retire(self) -> None:
        """Keep no connection any more: the back end has left the configuration."""
        self._retired = True
        self.close()

    def close(self) -> None:
        """Close what is idle."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abandon()
