"""The least that a proxy in Python can be, to tell what the language costs: one key, one model renamed, usage counted.

    python benchmarks/gateway/minimal.py PORT BACK_END_PORT [BACK_END_PORT ...]

Nothing that goes wrong is minded: no limit, no time-out, no client that leaves, no other path. Never use it for more
than a measure.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import httptools
import msgspec
import uvloop

KEY = b"Bearer sk-bench-0123456789abcdef0123456789abcdef"
ASKED, THERE = b'"bench"', b'"m"'


class Asked(msgspec.Struct):
    """What is read of a request."""

    model: str
    stream: bool = False


class Words(msgspec.Struct):
    """Tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class Told(msgspec.Struct):
    """What is read of an answer."""

    usage: Words | None = None


_asked, _told = msgspec.json.Decoder(Asked), msgspec.json.Decoder(Told)
_named = re.compile(rb'"model":' + ASKED)
_used = Words()


class Turn:
    """What is written in one turn of the loop goes out at its end."""

    def __init__(self) -> None:
        self.waiting: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        if not self.waiting:
            asyncio.get_running_loop().call_soon(self.send)
        self.waiting.append((transport, data))

    def send(self) -> None:
        waiting, self.waiting = self.waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                transport.write(data)


TURN = Turn()


class BackEnd:
    """One of the servers behind it."""

    def __init__(self, port: int) -> None:
        self.port, self.asked = port, 0
        self.idle: list[Outbound] = []


class Inbound(asyncio.Protocol):
    """A client."""

    def __init__(self, back_ends: list[BackEnd]) -> None:
        self.back_ends = back_ends
        self.parser = httptools.HttpRequestParser(self)
        self.key = self.body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.key = self.body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name == b"Authorization":
            self.key = value

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if self.key != KEY:
            TURN.write(self.transport, b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return
        asked, body = _asked.decode(self.body), _named.sub(b'"model":' + THERE, self.body, 1)
        if asked.stream:
            body = body[:-1] + b',"stream_options":{"include_usage":true}}'
        back_end = min(self.back_ends, key=lambda known: known.asked)
        back_end.asked += 1
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d"
        data = b"%b\r\n\r\n%b" % (head % len(body), body)
        if back_end.idle:
            back_end.idle.pop().ask(self, data)
        else:
            self.dialing = asyncio.ensure_future(self.dial(back_end, data))

    async def dial(self, back_end: BackEnd, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        _, server = await loop.create_connection(lambda: Outbound(back_end), "127.0.0.1", back_end.port)
        server.ask(self, data)


class Outbound(asyncio.Protocol):
    """A connection to a back end."""

    client: Inbound

    def __init__(self, back_end: BackEnd) -> None:
        self.back_end = back_end
        self.parser = httptools.HttpResponseParser(self)
        self.ended = self.chunked = False
        self.head: list[bytes] = []
        self.pieces: list[bytes] = []
        self.begins = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, client: Inbound, data: bytes) -> None:
        self.client = client
        TURN.write(self.transport, data)

    def data_received(self, data: bytes) -> None:
        self.ended, self.pieces, self.begins = False, [], False
        self.parser.feed_data(data)
        body = b"".join(self.pieces)
        if b'"usage"' in body:
            self.count(body)
        body = body.replace(b'"model":' + THERE, b'"model":' + ASKED)
        out = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") if self.chunked else body
        if self.begins:
            length = b"Transfer-Encoding: chunked" if self.chunked else b"Content-Length: %d" % len(body)
            out = b"%b%b\r\n\r\n%b" % (b"".join(self.head), length, out)
        if self.ended:
            out += b"0\r\n\r\n" if self.chunked else b""
            self.back_end.asked -= 1
            self.back_end.idle.append(self)
        TURN.write(self.client.transport, out)

    def count(self, body: bytes) -> None:
        events = [line[6:] for line in body.split(b"\n") if b'"usage"' in line] if self.chunked else [body]
        for event in events:
            usage = _told.decode(event).usage
            if usage is not None:
                _used.prompt_tokens += usage.prompt_tokens
                _used.completion_tokens += usage.completion_tokens

    def on_message_begin(self) -> None:
        self.chunked, self.head = False, []

    def on_header(self, name: bytes, value: bytes) -> None:
        if name == b"Transfer-Encoding":
            self.chunked = True
        elif name != b"Content-Length":
            self.head.append(b"%b: %b\r\n" % (name, value))

    def on_headers_complete(self) -> None:
        self.begins = True
        self.head.insert(0, b"HTTP/1.1 %d OK\r\n" % self.parser.get_status_code())

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        self.ended = True


async def main() -> None:
    """Serve until the process ends."""
    port, *ports = map(int, sys.argv[1:])
    back_ends = [BackEnd(at) for at in ports]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Inbound(back_ends), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
