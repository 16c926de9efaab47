"""A gateway and a back end on real sockets: the first way through."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trimtab.gateway.admission import Key, Keys, hash_of
from trimtab.gateway.app import serve
from trimtab.gateway.front import Front
from trimtab.gateway.outbound import Address
from trimtab.gateway.routes import BackEnd, Route, Routes, Target
from trimtab.gateway.usage import Record

ANSWER = (
    b'{"id":"1","choices":[{"message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":7,'
    b'"completion_tokens":2}}'
)


@asynccontextmanager
async def gateway(records: list[Record], seen: list[bytes]) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        seen.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    back_end = BackEnd("one", address, fixed=b"Host: one\r\nAuthorization: Bearer theirs\r\n")
    routes = Routes({"m": Route("m", [[Target(back_end, "model-there")]])})
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    stop = asyncio.Event()
    front = Front(Keys([(hash_of(b"mine"), Key("k1"))]), routes, records.append)
    task = asyncio.create_task(serve(front, listening, stop))
    try:
        yield port
    finally:
        stop.set()
        await task
        server.close()


async def ask(port: int, key: bytes) -> bytes:
    body = b'{"model":"m","messages":[]}'
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\nConnection: close\r\n"
    writer.write(head % key + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_request_passes_with_its_model_renamed_and_is_recorded() -> None:
    records: list[Record] = []
    seen: list[bytes] = []

    async def run() -> bytes:
        async with gateway(records, seen) as port:
            return await ask(port, b"mine")

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(ANSWER)
    assert b'"model":"model-there"' in seen[0]
    assert b"Authorization: Bearer theirs\r\n" in seen[0]
    assert [(r.key, r.model, r.back_end, r.status, r.prompt_tokens, r.completion_tokens) for r in records] == [
        ("k1", "m", "one", 200, 7, 2)
    ]


def test_a_wrong_key_is_refused_before_any_back_end_is_asked() -> None:
    records: list[Record] = []
    seen: list[bytes] = []

    async def run() -> bytes:
        async with gateway(records, seen) as port:
            return await ask(port, b"'mine'")

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"key_with_blanks" in answer
    assert (records, seen) == ([], [])
