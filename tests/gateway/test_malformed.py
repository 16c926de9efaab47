"""Malformed requests and smuggling: each ends as `malformed.yaml` says, and no back end sees a request in another."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.gateway.scripted import answer, one, run
from trimtab.gateway.app import ClientBounds

CASES: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("malformed.yaml").read_text())
BODY = b'{"model":"m","messages":[]}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\n"
WORDS = {
    "{head}": HEAD,
    "{body}": BODY,
    "{chunks}": b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
    "{request}": HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY),
    "{get}": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "{70000 b}": b"b" * 70000,
    "{1500 x}": b"x" * 1500,
    "{101 headers}": b"".join(b"A%d: b\r\n" % n for n in range(101)),
}


def sent(text: str) -> bytes:
    return re.sub("|".join(map(re.escape, WORDS)), lambda m: WORDS[m[0]].decode("latin-1"), text).encode("latin-1")


@pytest.mark.parametrize("pieces", ["whole", "bytes"])
def test_every_malformed_request_ends_as_stated(pieces: str) -> None:
    """All at once, and in pieces of one byte."""

    async def test() -> None:
        bounds = ClientBounds(max_body=1000, request_s=0.2, idle_s=0.2)
        async with one([answer()], bounds=bounds) as (running, back_end):
            for name, case in CASES.items():
                back_end.seen.clear()
                data = sent(case["send"])
                if pieces == "bytes" and len(data) < 1000:
                    found = await bytewise(running.port, data)
                elif pieces == "whole":
                    found = await running.raw(data)
                else:
                    continue
                told = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", found)]
                codes = [code.decode() for code in re.findall(rb'"code":"(\w+)"', found)]
                assert (name, told, codes) == (name, case["status"], case.get("codes", []))
                assert (name, len(back_end.seen)) == (name, case["back_end"])
                assert all(seen.count(b"HTTP/1.1") == 1 and seen.endswith(BODY) for seen in back_end.seen), name

    run(test())


async def bytewise(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for at in range(len(data)):
        writer.write(data[at : at + 1])
        await asyncio.sleep(0)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
