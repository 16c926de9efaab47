"""One timed request to an OpenAI-compatible server, streamed or whole; what went wrong is a value, not raised."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from trimtab.engine.api import (
    DONE,
    ApiFault,
    EventStream,
    ServerSentEvent,
    Usage,
    decode,
    is_html,
    printable,
    read_delta,
    read_fault,
)
from trimtab.messages import Message, msg

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait. A long prompt may give nothing for minutes; a running answer never pauses so long."""

    connect_s: float = 10.0
    first_s: float = 300.0
    between_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of one request; times in seconds from the moment it was sent."""

    total_s: float
    status: int | None = None
    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    first_token_s: float | None = None
    chunks: int = 0
    fault: ApiFault | None = None
    trouble: Message | None = None  # no whole answer: refused, cut, timed out, not an answer of this API

    @property
    def finished(self) -> bool:
        """Whether the answer came whole: 200, a finish reason, nothing wrong on the way."""
        return self.status == 200 and self.finish_reason is not None and self.fault is None and self.trouble is None

    @property
    def why(self) -> Message:
        """What went wrong, in words."""
        if self.trouble is not None:
            return self.trouble
        if self.fault is not None:
            return msg("{status}: {text}", status=self.fault.status, text=self.fault.message or "-")
        if self.finish_reason is None:
            return msg("the answer ended without a finish reason")
        return msg("status {status}", status=self.status)


def open_client(base_url: str, api_key: str | None, timeouts: Timeouts) -> httpx2.AsyncClient:
    """A client without a limit on connections; the proxy variables of the environment do not hold for this machine."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(timeouts.first_s, connect=timeouts.connect_s),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        trust_env=urlsplit(base_url).hostname not in _LOOPBACK,
    )


@dataclass
class _Gathering:
    """The answer while it comes in."""

    began: float = field(default_factory=time.perf_counter)
    status: int | None = None
    text: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None
    first_token_s: float | None = None
    chunks: int = 0
    fault: ApiFault | None = None

    def take(self, value: Any) -> bool:
        """Add a completion or a chunk; False when `value` is neither."""
        delta = read_delta(value)
        if delta is None:
            return False
        self.chunks += 1
        if delta.text and self.first_token_s is None:
            self.first_token_s = time.perf_counter() - self.began
        self.text.append(delta.text)
        self.finish_reason = delta.finish_reason or self.finish_reason
        self.usage = delta.usage or self.usage
        self.fault = delta.fault or self.fault
        return True

    def close(self, trouble: Message | None = None) -> Exchange:
        return Exchange(
            time.perf_counter() - self.began,
            self.status,
            "".join(self.text),
            self.finish_reason,
            self.usage,
            self.first_token_s,
            self.chunks,
            self.fault,
            trouble,
        )


async def ask(client: httpx2.AsyncClient, url: str, body: Mapping[str, Any], timeouts: Timeouts) -> Exchange:
    """POST `body` and read the answer, streamed if `body` asks so. Cancelling it closes the connection."""
    got = _Gathering()
    try:
        async with client.stream("POST", url, json=dict(body)) as response:
            got.status = response.status_code
            if response.status_code != 200:
                got.fault = read_fault(response.status_code, await response.aread())
                return got.close()
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return got.close(await _read_stream(response, got, timeouts))
            return got.close(_read_whole(await response.aread(), got))
    except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
        return got.close(describe(error, timeouts))


async def _read_stream(response: httpx2.Response, got: _Gathering, timeouts: Timeouts) -> Message | None:
    parser = EventStream()
    pieces = response.aiter_bytes()
    wait = timeouts.first_s
    while True:
        try:
            async with asyncio.timeout(wait):
                events = await _next_events(pieces, parser)
        except TimeoutError:
            return msg("the stream gave nothing for {seconds:g} s", seconds=wait)
        if events is None:
            return None if got.finish_reason else msg("the stream was cut after {chunks} chunks", chunks=got.chunks)
        wait = timeouts.between_s
        for event in events:
            if event.data == DONE or got.fault is not None:
                return None
            if not got.take(decode(event.data)):
                return msg("the stream holds something that is no completion: {text}", text=printable(event.data))


async def _next_events(pieces: AsyncIterator[bytes], parser: EventStream) -> list[ServerSentEvent] | None:
    """The next whole events, None at the end; comments that keep a connection open are no answer and are waited out."""
    async for piece in pieces:
        if events := parser.feed(piece):
            return events
    return None


def _read_whole(body: bytes, got: _Gathering) -> Message | None:
    if got.take(decode(body)):
        return None
    if is_html(body):
        return msg("the answer is a web page, not a completion")
    return msg("the answer is no completion: {text}", text=printable(body.decode("utf-8", errors="replace")))


def describe(error: Exception, timeouts: Timeouts) -> Message:
    """What a failure of the transport means, in words."""
    if isinstance(error, httpx2.ConnectTimeout):
        return msg("no connection within {seconds:g} s", seconds=timeouts.connect_s)
    if isinstance(error, httpx2.TimeoutException):
        return msg("no answer within {seconds:g} s", seconds=timeouts.first_s)
    if isinstance(error, httpx2.ConnectError):
        return msg("no connection: {reason}", reason=str(error) or type(error).__name__)
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError):
        return msg("the server closed the connection: {reason}", reason=str(error) or type(error).__name__)
    return msg("{kind}: {reason}", kind=type(error).__name__, reason=str(error))


def tls_fault(error: BaseException | None) -> ssl.SSLError | None:
    """The TLS error among the causes of `error`, if there is one."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None
