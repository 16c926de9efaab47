"""A connection to a back end: one request at a time out, the answer in pieces in; and the pool of idle connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext
from typing import Protocol, cast

import httptools
import msgspec

from trimtab.gateway.inbound import lowered

MAX_ANSWER_HEAD = 64 << 10
HIGH_WATER = 1 << 20


class Receiving(Protocol):
    """Who takes an answer."""

    def answer_begins(self, connection: Outbound) -> None:
        """Status and headers are there: `connection.status`, `.headers`, `.length`."""

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
    ssl: SSLContext | None = None


class Outbound(asyncio.Protocol):
    """One connection. `send` gives it a request; the receiver's calls come in the event loop's thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiving | None = None
        self._complete = self._reusable = self._chunked = self._paused = False
        self._head_size = 0
        self._pieces: list[bytes] = []
        self.used = 0  # requests sent so far: a first failure on a reused connection is the idle time-out's
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.length = -1  # bytes of the body when told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)

    def send(self, data: bytes, receiver: Receiving) -> None:
        """Send one request; its answer goes to `receiver`."""
        self._receiver, self._complete = receiver, False
        self.used += 1
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is None:  # an idle connection must be silent
            self._drop()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._broken(f"its answer is no valid HTTP ({error})")
            return
        pieces, self._pieces = self._pieces, []
        if self._receiver is not receiver:  # it did not want the body
            return
        if self._complete:
            self._release(receiver, b"".join(pieces))
        elif self.status >= 200:
            receiver.answer_piece(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pool.gone(self)
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        if self.status and self.length < 0 and not self._chunked and exc is None:
            receiver.answer_ends(b"")  # the end of the connection is the end of the body
        else:
            receiver.answer_breaks("the connection was lost" if exc is None else f"the connection was lost ({exc})")

    # httptools

    def on_message_begin(self) -> None:
        self.status, self.headers, self.length, self._head_size, self._chunked = 0, [], -1, 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_ANSWER_HEAD:
            raise ValueError("too many headers")
        name = lowered(name)
        if name == b"content-length":
            self.length = int(value)
        elif name == b"transfer-encoding":
            self._chunked = value.lower() == b"chunked"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._reusable = self._parser.should_keep_alive()
        if self.status >= 200 and self._receiver is not None:
            self._receiver.answer_begins(self)

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self._complete = self.status >= 200
        self._reusable = self._parser.should_keep_alive()  # only here it says the right thing

    # for the one who asked

    def pause(self, pause: bool) -> None:
        """Stop reading the answer (True), or go on."""
        if self._transport is None or pause is self._paused:
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abandon(self) -> None:
        """Nobody waits for the answer any more: the connection is cut, which a model server takes as a cancellation."""
        self._receiver = None
        self._drop()

    def _release(self, receiver: Receiving, last: bytes) -> None:
        self._receiver = None
        self.pause(False)
        if self._reusable and self._transport is not None:
            self._pool.give_back(self)
        else:
            self._drop()
        receiver.answer_ends(last)

    def _broken(self, reason: str) -> None:
        receiver, self._receiver = self._receiver, None
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

    def take(self) -> Outbound | None:
        """An idle connection."""
        return self._idle.pop() if self._idle else None

    async def dial(self, timeout_s: float) -> Outbound:
        """A new connection. OSError, or TimeoutError after `timeout_s`."""
        loop = asyncio.get_running_loop()
        where = self.address
        made: Callable[[], Outbound] = lambda: Outbound(self)  # noqa: E731
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(made, where.host, where.port, ssl=where.ssl)
        return connection

    def give_back(self, connection: Outbound) -> None:
        """A connection whose answer is whole."""
        if len(self._idle) < self._keep:
            self._idle.append(connection)
        else:
            connection.abandon()

    def gone(self, connection: Outbound) -> None:
        """A connection that was lost."""
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        """Close what is idle."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abandon()
