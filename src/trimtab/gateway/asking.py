"""A question of the gateway's own to a back end, beside the requests of clients: whether it is up, what it has."""

from __future__ import annotations

import asyncio

from trimtab.gateway.outbound import Outbound, Pool
from trimtab.gateway.routes import BackEnd

MOST = 8 << 20  # bytes of an answer


class _Answer:
    """Receives one answer."""

    def __init__(self) -> None:
        self.done: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._pieces: list[bytes] = []
        self._size = self._status = 0

    def answer_begins(self, connection: Outbound) -> None:
        self._status = connection.status

    def answer_piece(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > MOST:
            self.answer_breaks(f"an answer of more than {MOST} bytes")

    def answer_ends(self, last: bytes) -> None:
        if not self.done.done():
            self.done.set_result((self._status, b"".join([*self._pieces, last])))

    def answer_breaks(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(reason))


async def ask(
    back_end: BackEnd, path: bytes, timeout_s: float, body: bytes | None = None, *, method: bytes = b""
) -> tuple[int, bytes]:
    """Status and body of GET `path`, or of POST with a JSON body. OSError or TimeoutError when there is no answer.

    A connection of its own, which ends with the answer: one that waits in the pool may be closed already, which would
    look like a failure, and one that came into the pool could be a request's before whoever asked goes on.
    """
    data = b"%b %b HTTP/1.1\r\n%b" % (method or (b"GET" if body is None else b"POST"), path, back_end.fixed)
    if back_end.kind == "anthropic":
        data += b"anthropic-version: 2023-06-01\r\n"
    if body is not None:
        data += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    async with asyncio.timeout(timeout_s):
        connection = await Pool(back_end.address, keep=0).dial(timeout_s)
        answer = _Answer()
        try:
            connection.send(data + b"\r\n" + (body or b""), answer)
            return await answer.done
        finally:
            if connection.receiver is not None:
                connection.abandon()
