"""Messages whose heads came before: known again whatever their length, and nothing else is taken for them."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.gateway.scripted import CHAT, answer, one, request, run
from trimtab.gateway.heads import seen

HEAD = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %b\r\nX-A: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (HEAD % b"3" + b"abc", b"abc"),
        (HEAD % b"12" + b"a" * 12, b"a" * 12),
        (HEAD % b"0", b""),
        (HEAD % b"3" + b"abcd", None),  # a second message begins
        (HEAD % b"3" + b"ab", None),  # more is to come
        (HEAD % b"+3" + b"abc", None),
        (HEAD % b"" + b"", None),
        (HEAD % b"3 " + b"abc", None),
        (HEAD % b"0x3" + b"abc", None),
        (HEAD % b"1234567890" + b"abc", None),
        ((HEAD % b"3").replace(b"X-A: 1", b"X-A: 2") + b"abc", None),
        ((HEAD % b"3").replace(b"X-A: 1", b"Content-Length: 4") + b"abc", None),
        ((HEAD % b"3").replace(b"X-A: 1", b"Transfer-Encoding: chunked") + b"abc", None),
        ((HEAD % b"3")[:-2] + b"X-B: 1\r\n\r\nabc", None),
    ],
)
def test_only_the_same_head_with_the_body_that_it_announces_is_known(data: bytes, body: bytes | None) -> None:
    known = seen(HEAD % b"2" + b"{}", b"{}", "it")
    assert known is not None
    assert known.about == "it"
    assert known.body_of(data) == body


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"POST /a HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        (HEAD % b"02" + b"{}", b"{}"),
        (HEAD % b"2" + b"{}" + HEAD % b"2" + b"{}", b"{}"),
        (HEAD % b"2" + b"[]", b"{}"),
    ],
)
def test_what_is_not_one_message_with_a_plain_length_is_not_remembered(data: bytes, body: bytes) -> None:
    assert seen(data, body, "it") is None


def asked(text: str, *headers: str) -> bytes:
    return request({"messages": [{"role": "user", "content": text}]}, "/v1/chat/completions",
                   "Connection: keep-alive", *headers)  # fmt: skip


async def exchanged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *pieces: bytes) -> tuple[int, bytes]:
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


def test_one_connection_with_heads_that_come_again_and_heads_that_do_not() -> None:
    async def test() -> None:
        async with one([answer(CHAT)]) as (running, back_end):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            texts = ["a", "b" * 9, "c" * 500, "d", "e" * 90000, "f"]
            for text in texts:
                status, body = await exchanged(reader, writer, asked(text))
                assert status == 200
                assert json.loads(body)["choices"] == CHAT["choices"]
            for cut in (3, 60, 200):  # the same head in two pieces
                whole = asked("g" * 30)
                assert (await exchanged(reader, writer, whole[:cut], whole[cut:]))[0] == 200
            assert (await exchanged(reader, writer, asked("h", "traceparent: 00-1-2-3")))[0] == 200
            wrong = asked("i").replace(b"Authorization: Bearer ", b"Authorization: Bearer x")
            assert (await exchanged(reader, writer, wrong))[0] == 401
            assert (await exchanged(reader, writer, asked("j")))[0] == 200
            two = asked("k") + asked("l")
            assert (await exchanged(reader, writer, two))[0] == 200
            assert (await exchanged(reader, writer))[0] == 200
            writer.write(asked("m").replace(b"Content-Length: ", b"Content-Length: 1\r\nContent-Length: "))
            assert b" 400 " in await reader.readline()
            writer.close()
            assert len(back_end.seen) == len(texts) + 3 + 1 + 1 + 2

    run(test())
