"""What one long prompt does to short streams beside it. python benchmarks/blocking.py URL LONG_TOKENS"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import uvloop

from trimtab.bench.blocking import Blocking, measure_blocking
from trimtab.bench.client import Timeouts, open_client
from trimtab.bench.endpoint import Target, find_server, settle
from trimtab.bench.load import Shape, Wanted, read_lengths
from trimtab.bench.prompt import make_ruler
from trimtab.bench.texts import Sized, write
from trimtab.bench.wire import Answer, Bounds, address_of, send

SHAPE = Shape(read_lengths("64"), read_lengths("200"))
TIMES = 3


async def blocking(url: str, long_tokens: int) -> Blocking:
    timeouts = Timeouts()
    async with open_client(url, None, timeouts) as client:
        server = await find_server(client, Target(url), timeouts)
        server, _ = await settle(client, server, "Say a word.", 4, timeouts)
        ruler = await make_ruler(client, server, "0.", timeouts)
        assert ruler is not None, "the server counts no tokens"
        short = (await write(client, server, ruler, SHAPE, [Wanted(0, 64, 200)], 1))[0]
        wanted = [Wanted(number, long_tokens, 1) for number in range(TIMES + 1)]
        longs = await write(client, server, ruler, SHAPE, wanted, 2)
    address = address_of(server.url, None)

    def body(one: Sized) -> Mapping[str, Any]:
        return server.body(one.text, one.wanted.output_tokens, stream=True) | {"ignore_eos": True}

    async def ask_short(number: int) -> Answer:
        return await send(address, body(short.again(number + 1, number, 1)), Bounds())

    async def ask_long(number: int) -> Answer:
        return await send(address, body(longs[number]), Bounds())

    await ask_long(TIMES)  # kernels of that length are compiled
    return await measure_blocking(ask_short, ask_long, long_tokens=longs[0].tokens, times=TIMES)


if __name__ == "__main__":
    found = uvloop.run(blocking(sys.argv[1], int(sys.argv[2])))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
