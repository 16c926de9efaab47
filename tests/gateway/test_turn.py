"""What is written in one turn of the loop goes out at its end, in order, and never to a connection that closes."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from trimtab.gateway.turn import turn


async def connected() -> tuple[asyncio.Transport, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    return cast(asyncio.Transport, transport), theirs


def nothing_there(end: socket.socket) -> bool:
    try:
        end.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def test_of_one_turn_all_goes_out_at_its_end() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        (one, at_one), (two, at_two) = await connected(), await connected()
        for transport, data in ((one, b"a"), (two, b"b"), (one, b"c")):
            turn().write(transport, data)
        assert nothing_there(at_one)
        assert nothing_there(at_two)
        assert await loop.sock_recv(at_two, 9) == b"b"
        assert at_one.recv(9) == b"ac"
        one.close()
        two.close()
        at_one.close()
        at_two.close()

    asyncio.run(main())


def test_what_was_written_before_it_closed_is_sent_and_nothing_after() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        (one, at_one), (two, at_two) = await connected(), await connected()
        turn().write(one, b"a")
        turn().send()
        one.close()
        turn().write(one, b"b")
        turn().write(two, b"c")
        assert await loop.sock_recv(at_two, 9) == b"c"
        assert await loop.sock_recv(at_one, 9) == b"a"
        assert await loop.sock_recv(at_one, 9) == b""
        two.close()
        at_one.close()
        at_two.close()

    asyncio.run(main())
