"""A back end that says exactly the bytes of a test, a gateway before it in the same loop, and raw clients."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvloop

from trimtab.gateway.admission import Key, Keys, hash_of
from trimtab.gateway.app import ClientBounds, serve
from trimtab.gateway.config import BackEndConfig, Bounds, Config, ModelConfig, TargetConfig
from trimtab.gateway.fleet import Fleet
from trimtab.gateway.front import Front
from trimtab.gateway.routes import Between, no_translation
from trimtab.gateway.usage import Record

KEY = b"mine"
USAGE = {"prompt_tokens": 7, "completion_tokens": 2}
CHAT = {"id": "1", "model": "m", "choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": USAGE}
RESET, CLOSE = "reset", "close"
# Bytes to send, an event to wait for, or how the connection ends (it stays open after the last step).
Step = bytes | asyncio.Event | str
Script = Callable[[int, bytes], Sequence[Step]]


def answer(body: Any = CHAT, status: int = 200, *headers: str, kind: str = "application/json") -> bytes:
    """A whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Words", f"Content-Type: {kind}", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def events(*pieces: Any, end: bytes = b"\n\n") -> list[bytes]:
    """Events of a stream; a dict is sent as JSON."""
    return [b"data: " + (p if isinstance(p, bytes) else json.dumps(p).encode()) + end for p in pieces]


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def streamed(*pieces: Any) -> bytes:
    """A whole stream."""
    return STREAM_HEAD + b"".join(map(chunk, events(*pieces, b"[DONE]"))) + b"0\r\n\r\n"


_STARTED: set[Scripted] = set()  # stopped at a test's end, however it ends: a loop with open connections does not close


class Scripted:
    """`seen`: each request as it came, by its Content-Length. `script(n, request)`: the steps of the n-th answer."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.script, self.port = script, port
        self.seen: list[bytes] = []
        self.connections = 0
        self.arrived = asyncio.Event()  # a request came
        self.left = asyncio.Event()  # a connection was lost
        self.left_at = 0.0
        self.open: set[asyncio.Transport] = set()
        self.written = 0

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        _STARTED.add(self)

    async def stop(self) -> None:
        _STARTED.discard(self)
        self._server.close()
        for transport in list(self.open):
            transport.abort()
        while self.open:
            self.left.clear()
            await self.left.wait()


class _Connection(asyncio.Protocol):
    def __init__(self, back_end: Scripted) -> None:
        self._back_end, self._data = back_end, b""
        self._playing: asyncio.Task[None] | None = None
        self._flows = asyncio.Event()
        self._flows.set()

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._back_end.connections += 1
        self._back_end.open.add(transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, mark, rest = self._data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        if not mark or len(rest) < length:
            return
        request, self._data = head + mark + rest[:length], rest[length:]
        self._back_end.seen.append(request)
        self._back_end.arrived.set()
        steps = self._back_end.script(len(self._back_end.seen) - 1, request)
        self._playing = asyncio.get_running_loop().create_task(self._play(steps))

    async def _play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, bytes):
                await self._flows.wait()
                self._transport.write(step)
                self._back_end.written += len(step)
            elif isinstance(step, asyncio.Event):
                await step.wait()
            elif step == RESET:
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            else:
                self._transport.close()
            await asyncio.sleep(0)

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._back_end.left_at = asyncio.get_running_loop().time()
        self._back_end.open.discard(self._transport)
        self._back_end.left.set()
        if self._playing is not None:
            self._playing.cancel()


class Running:
    """A gateway and what it recorded."""

    def __init__(self, port: int, front: Front, fleet: Fleet, records: list[Record], key: Key) -> None:
        self.port, self.front, self.fleet, self.records, self.key = port, front, fleet, records, key
        self.stop = asyncio.Event()

    async def send(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which `data` was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        return reader, writer

    async def raw(self, data: bytes) -> bytes:
        """What comes back on one connection, up to its end, or to a reset."""
        reader, writer = await self.send(data)
        found = b""
        try:
            while piece := await reader.read(1 << 16):
                found += piece
        except ConnectionError:
            return found
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        return found

    async def ask(self, body: Any = None, path: str = "/v1/chat/completions", *headers: str) -> Answer:
        """One POST with the right key."""
        return Answer(await self.raw(request(body, path, *headers)))


class Answer:
    """An answer as it came."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        while True:
            head, _, rest = raw.partition(b"\r\n\r\n")
            self.status = int(head.split(b" ", 2)[1]) if head else 0
            if self.status != 100:
                break
            raw = rest
        lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
        self.headers = {name.decode().lower(): value.decode() for name, _, value in lines}
        self.whole = True
        if self.headers.get("transfer-encoding") == "chunked":
            self.body, self.whole = _unchunked(rest)
        else:
            self.body = rest
            self.whole = len(rest) == int(self.headers.get("content-length", len(rest)))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def _unchunked(data: bytes) -> tuple[bytes, bool]:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            return body, data == b"\r\n"
        body += data[:n]
        if data[n : n + 2] != b"\r\n":
            return body, False
        data = data[n + 2 :]
    return body, False


def request(body: Any = None, path: str = "/v1/chat/completions", *headers: str) -> bytes:
    """A POST that closes its connection; `headers` come beside the usual ones."""
    data = body if isinstance(body, bytes) else json.dumps({"model": "m", **(body or {})}).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: gateway", "Authorization: Bearer mine", f"Content-Length: {len(data)}"]
    if not any(h.lower().startswith("content-type") for h in headers):
        lines.append("Content-Type: application/json")
    if not any(h.lower().startswith("connection") for h in headers):
        lines.append("Connection: close")
    return "\r\n".join([*lines, *headers]).encode() + b"\r\n\r\n" + data


QUICK = Bounds(connect=0.5, first_byte=0.4, between=0.4, total=1.5)


def config(ports: Mapping[str, int], models: Mapping[str, ModelConfig] | None = None, **fields: Any) -> Config:
    """Back ends on these ports, all of them replicas of "m" unless `models` says otherwise."""
    fields = {"kind": "vllm", "bounds": fields.pop("waits", QUICK), **fields}
    ends = {name: BackEndConfig(f"http://127.0.0.1:{port}", **fields) for name, port in ports.items()}
    return Config(
        back_ends=ends, models=dict(models or {"m": ModelConfig(tuple(TargetConfig(name, "m") for name in ports))})
    )


@asynccontextmanager
async def gateway(
    config: Config, *, between: Between = no_translation, bounds: ClientBounds | None = None, key: Key | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Running]:  # fmt: skip
    """A gateway on a free port."""
    fleet, records, key = Fleet(between), [], key or Key("k1")
    listening = socket.create_server(("127.0.0.1", 0))
    front = Front(Keys([(hash_of(KEY), key)]), fleet.apply(config, {}), records.append)
    running = Running(listening.getsockname()[1], front, fleet, records, key)
    serving = asyncio.create_task(serve(front, listening, running.stop, bounds, tls=tls, sweep_s=0.05))
    try:
        yield running
        assert front.live == set()
        assert key.parallel == 0
    finally:
        running.stop.set()
        await asyncio.wait_for(serving, 5)


@asynccontextmanager
async def one(script: Script | Sequence[Step], **fields: Any) -> AsyncIterator[tuple[Running, Scripted]]:
    """A gateway before one back end."""
    async with several([script], **fields) as (running, ends):
        yield running, ends[0]


@asynccontextmanager
async def several(
    scripts: Sequence[Script | Sequence[Step]], *, models: Mapping[str, ModelConfig] | None = None, **fields: Any
) -> AsyncIterator[tuple[Running, list[Scripted]]]:
    """A gateway before several back ends: "a", "b" ..."""
    ends = [Scripted(s if callable(s) else _always(s)) for s in scripts]
    for end in ends:
        await end.start()
    served = {name: fields.pop(name) for name in ("between", "bounds", "key", "tls") if name in fields}
    try:
        ports = {name: end.port for name, end in zip("abcdef", ends, strict=False)}
        async with gateway(config(ports, models, **fields), **served) as running:
            yield running, ends
    finally:
        for end in ends:
            await end.stop()


def _always(steps: Sequence[Step]) -> Script:
    return lambda n, request: steps


def run(test: Any) -> Any:
    """Run a test's coroutine in the gateway's own loop."""

    wrong: list[dict[str, Any]] = []  # what went wrong in callbacks, which nobody awaits

    async def whole() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
        try:
            return await asyncio.wait_for(test, 20)
        finally:
            for back_end in list(_STARTED):
                await back_end.stop()
            assert wrong == []

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(whole())


async def until(true: Callable[[], bool]) -> None:
    """Let the loop go on until it is true."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110  (many things change it)
            await asyncio.sleep(0.005)
