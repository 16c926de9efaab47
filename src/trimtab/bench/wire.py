"""A streaming request timed at the socket: every arrival gets its time first and is parsed when the answer is over.

httpx takes about 100 us a chunk; 64 streams of 100 chunks a second leave 8 us a chunk to a client that may use 5% of a
core. So the bytes are only stamped as they come, and read once the stream ended.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import msgspec

from trimtab.bench.stats import CUT
from trimtab.engine.api import DONE, ApiFault, EventStream, Usage, decode, read_delta, read_fault

MAX_ANSWER = 256 << 20  # bytes of one answer


class Address(msgspec.Struct, frozen=True):
    """Where requests go: the parts of a URL that a request line and a connection need."""

    host: str
    port: int
    target: bytes
    tls: ssl.SSLContext | None
    headers: bytes


def address_of(url: str, api_key: str | None) -> Address:
    """The address of an endpoint's URL."""
    parts = urlsplit(url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    host = parts.hostname or ""
    lines = (
        f"Host: {parts.netloc.rpartition('@')[2]}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
    )
    if api_key:
        lines += f"Authorization: Bearer {api_key}\r\n"
    return Address(host, port, (parts.path or "/").encode(), tls, lines.encode("latin-1"))


class Bounds(msgspec.Struct, frozen=True):
    """Seconds to wait."""

    connect_s: float = 10.0
    first_s: float = 300.0
    between_s: float = 120.0


class Answer(msgspec.Struct):
    """What came of one request. Times are seconds since it was sent; `trouble` is a kind, None when it came whole."""

    sent: float = 0.0  # perf_counter
    connect_s: float = 0.0
    status: int | None = None
    times: list[float] = []  # of the chunks with a choice in them
    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    fault: ApiFault | None = None
    trouble: str | None = None
    streamed: bool = True


class _Stream(asyncio.Protocol):
    """One connection for one request."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[str | None] = loop.create_future()  # the kind of trouble, None: whole
        self.status: int | None = None
        self.event_stream = False
        self.pieces: list[bytes] = []
        self.stamps: list[float] = []
        self.last = 0.0
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._bytes = 0
        self._length_known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, data: bytes) -> float:
        """Send; the moment of it."""
        self.last = sent = time.perf_counter()
        assert self._transport is not None
        self._transport.write(data)
        return sent

    def data_received(self, data: bytes) -> None:
        self.last = time.perf_counter()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end("no valid HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        until_close = self.status is not None and not self._length_known and exc is None
        self._end(None if until_close else "connection lost")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-type":
            self.event_stream = value.lower().startswith(b"text/event-stream")
        elif name in (b"content-length", b"transfer-encoding"):
            self._length_known = True

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > MAX_ANSWER:
            self._end("answer too large")
            return
        self.pieces.append(piece)
        self.stamps.append(self.last)

    def on_message_complete(self) -> None:
        if self.status is not None and self.status >= 200:
            self._end(None)

    def _end(self, trouble: str | None) -> None:
        if not self.over.done():
            self.over.set_result(trouble)
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def cut(self, trouble: str) -> None:
        """Stop waiting."""
        self._end(trouble)


async def send(address: Address, body: Mapping[str, Any], bounds: Bounds, until: float | None = None) -> Answer:
    """POST `body` on a connection of its own and read the answer, at most `until` (perf_counter): then it is CUT.

    Cancelling it cuts the connection too.
    """
    data = msgspec.json.encode(body)
    head = b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (address.target, address.headers, len(data))
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(bounds.connect_s):
            _, stream = await loop.create_connection(_Stream, address.host, address.port, ssl=address.tls)
    except TimeoutError:
        return Answer(began, trouble="connect timeout")
    except OSError as error:
        return Answer(began, trouble="no TLS" if isinstance(error, ssl.SSLError) else "connection refused")
    connected = time.perf_counter()
    sent = stream.ask(head + data)
    try:
        trouble = await _whole(stream, bounds, until)
    except asyncio.CancelledError:
        stream.cut("cancelled")
        raise
    return _read(stream, Answer(sent, connected - began, stream.status, []), trouble)


async def _whole(stream: _Stream, bounds: Bounds, until: float | None) -> str | None:
    """Wait for the end; a timer per wait, not per chunk."""
    while True:
        bound = bounds.between_s if stream.stamps else bounds.first_s
        now = time.perf_counter()
        left = stream.last + bound - now
        if until is not None and until <= now:
            stream.cut(CUT)
            break
        if left <= 0:
            stream.cut("timeout between chunks" if stream.stamps else "timeout before the first chunk")
            break
        done, _ = await asyncio.wait((stream.over,), timeout=min(left, until - now) if until is not None else left)
        if done:
            break
    return stream.over.result()


def _read(stream: _Stream, answer: Answer, trouble: str | None) -> Answer:
    """Read what was stamped."""
    if stream.status is not None and stream.status != 200:
        answer.fault = read_fault(stream.status, b"".join(stream.pieces))
        answer.trouble = f"status {stream.status}"
        return answer
    if not stream.event_stream:
        answer.streamed = False
        found = _take(answer, decode(b"".join(stream.pieces)), stream.last)
        answer.trouble = trouble or (None if found else "no completion")
        return answer
    parser: EventStream | None = None
    ended = False
    text: list[str] = []
    for piece, stamp in zip(stream.pieces, stream.stamps, strict=True):
        if parser is None and (delta := _usual(piece)) is not None:
            answer.times.append(stamp - answer.sent)
            text.append(delta)
            continue
        parser = parser or EventStream()
        for event in parser.feed(piece):
            if event.data == DONE:
                ended = True
            elif not _take(answer, decode(event.data), stamp, text):
                answer.trouble = answer.trouble or "no completion"
        parser = None if parser.between else parser
    answer.text = "".join(text)
    if answer.fault is not None:
        answer.trouble = "error in the stream"
    elif trouble is not None or not (ended or answer.finish_reason):
        answer.trouble = trouble or "stream cut"
    elif not answer.times:
        answer.trouble = "empty answer"
    return answer


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: msgspec.Raw | None = None
    error: msgspec.Raw | None = None


_chunk = msgspec.json.Decoder(_Chunk)


def _usual(piece: bytes) -> str | None:
    """The text of a piece that is one plain chunk in the middle of an answer, as nearly all are; else None."""
    if not piece.startswith(b"data: {") or piece.find(b"\n\n") != len(piece) - 2:
        return None
    try:
        chunk = _chunk.decode(memoryview(piece)[6:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if len(chunk.choices) != 1 or chunk.usage is not None or chunk.error is not None:
        return None
    only = chunk.choices[0]
    if only.finish_reason is not None:
        return None
    part = only.delta
    if part is None:
        return only.text or ""
    return part.content or part.reasoning or part.reasoning_content or ""


def _take(answer: Answer, value: Any, stamp: float, text: list[str] | None = None) -> bool:
    delta = read_delta(value)
    if delta is None:
        return False
    answer.usage = delta.usage or answer.usage
    answer.fault = delta.fault or answer.fault
    answer.finish_reason = delta.finish_reason or answer.finish_reason
    if value.get("choices"):
        answer.times.append(stamp - answer.sent)
        if text is not None:
            text.append(delta.text)
        else:
            answer.text = delta.text
    return True
