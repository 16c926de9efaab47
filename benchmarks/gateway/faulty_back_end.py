"""A back end with faults: each request's last text, "KIND NUMBER", says what becomes of it; prints its two ports.

The tokens that it tells follow from the number, so that whoever asked knows them (`tokens`).
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from typing import cast

TEXT = "wörld 你好 " * 12
CHUNKS = 8
_CASE = re.compile(rb'"([a-z-]+) (\d+)"')


def tokens(number: int) -> tuple[int, int]:
    """Prompt and completion tokens of a request."""
    return 10 + number % 97, 1 + number % 31


def _usage(number: int) -> dict[str, int]:
    prompt, completion = tokens(number)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def body_of(number: int, *, usage: bool = True) -> bytes:
    """A whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": f"{number} {TEXT}"}, "finish_reason": "stop"}
    answer = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "m", "choices": [choice]}
    return json.dumps(answer | ({"usage": _usage(number)} if usage else {}), ensure_ascii=False).encode()


def events_of(number: int) -> list[bytes]:
    """A stream's events, its usage among them."""
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "model": "m"}
    deltas = [{"index": 0, "delta": {"content": f"{number}.{at} 你好 "}, "finish_reason": None} for at in range(CHUNKS)]
    found = [head | {"choices": [delta]} for delta in deltas] + [head | {"choices": [], "usage": _usage(number)}]
    return [b"data: %b\n\n" % json.dumps(event, ensure_ascii=False).encode() for event in found] + [b"data: [DONE]\n\n"]


def _answer(status: bytes, body: bytes, *lines: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = [b"HTTP/1.1 " + status, b"Content-Type: application/json", b"Content-Length: %d" % size, *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def _error(status: bytes, *lines: bytes) -> bytes:
    return _answer(status, b'{"error":{"message":"as asked","type":"server_error","code":null}}', *lines)


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Faulty(asyncio.Protocol):
    """A connection; `first`: whether this is the back end whose connections drop."""

    def __init__(self, first: bool) -> None:
        self._first, self._waiting = first, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        head, mark, rest = self._waiting.partition(b"\r\n\r\n")
        if not mark:
            return
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        body, self._waiting = rest[: int(length[1])] if length else rest, b""
        if length and len(body) < int(length[1]):
            self._waiting = head + mark + rest
            return
        if head.startswith(b"GET"):
            self._transport.write(_answer(b"200 OK", b'{"object":"list","data":[{"id":"m","object":"model"}]}'))
            return
        case = _CASE.findall(body)[-1]
        self._serve(case[0].decode(), int(case[1]), b'"include_usage":true' in body.replace(b" ", b""))

    def _serve(self, kind: str, number: int, usage: bool) -> None:
        events = [event for event in events_of(number) if usage or b'"usage"' not in event]
        if kind == "drop" and not self._first:
            kind = "plain"
        if kind == "plain":
            self._transport.write(_answer(b"200 OK", body_of(number)))
        elif kind == "uncounted":
            self._transport.write(_answer(b"200 OK", body_of(number, usage=False)))
        elif kind == "stream":
            self._transport.write(STREAM + b"".join(map(_chunk, events)) + b"0\r\n\r\n")
        elif kind == "split":
            data = STREAM + b"".join(map(_chunk, events)) + b"0\r\n\r\n"
            self._slowly([data[at : at + 37] for at in range(0, len(data), 37)], 0.0)
        elif kind == "slow":
            self._slowly([_answer(b"200 OK", body_of(number))], 0.05)
        elif kind == "leave":
            self._on_and_on(STREAM + _chunk(events[0]), _chunk(events[1]))
        elif kind == "last":  # says that it closes, and does
            self._end(_answer(b"200 OK", body_of(number), b"Connection: close"))
        elif kind == "bad":
            self._transport.write(_error(b"400 Bad Request"))
        elif kind == "broken":
            self._transport.write(_error(b"500 Internal Server Error"))
        elif kind == "busy":
            self._transport.write(_error(b"429 Too Many Requests", b"Retry-After: 1"))
        elif kind == "cut":
            self._end(STREAM + b"".join(map(_chunk, events[:3])))
        elif kind == "short":  # a length that is a lie
            self._end(_answer(b"200 OK", body_of(number), length=100_000))
        elif kind == "garbage":
            self._end(b"this is no HTTP\r\n\r\n")
        else:  # drop
            self._transport.close()

    def _end(self, data: bytes) -> None:
        self._transport.write(data)
        self._transport.close()

    def _slowly(self, pieces: list[bytes], every_s: float) -> None:
        loop = asyncio.get_running_loop()

        def say(at: int) -> None:
            if not self._transport.is_closing():
                self._transport.write(pieces[at])
                if at + 1 < len(pieces):
                    later: Callable[..., object] = (
                        loop.call_soon if every_s == 0 else lambda *a: loop.call_later(every_s, *a)
                    )
                    later(say, at + 1)

        loop.call_later(every_s, say, 0)

    def _on_and_on(self, piece: bytes, following: bytes) -> None:
        """A stream that ends when its client leaves, however late that one comes to it."""
        if not self._transport.is_closing():
            self._transport.write(piece)
            asyncio.get_running_loop().call_later(0.05, self._on_and_on, following, following)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def main() -> None:
    loop, ports = asyncio.get_running_loop(), []
    for first in (True, False):
        server = await loop.create_server(lambda first=first: Faulty(first), "127.0.0.1", 0, backlog=1024)  # type: ignore[misc]
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it ends


if __name__ == "__main__":
    asyncio.run(main())
