"""Listen, sweep and stop: the loop around the gateway's connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

import msgspec

from trimtab.gateway.errors import body as error_body
from trimtab.gateway.front import Front
from trimtab.gateway.inbound import MAX_HEAD, Inbound

SWEEP_S = 1.0


class ClientBounds(msgspec.Struct):
    """What a client is held to. A reload may set the fields; a connection keeps the sizes that it began with."""

    request_s: float = 30.0
    idle_s: float = 75.0
    max_body: int = 32 << 20
    max_head: int = MAX_HEAD


class _Connections(set[Inbound]):
    """Those that are open."""

    def __init__(self) -> None:
        super().__init__()
        self._gone = asyncio.Event()

    def discard(self, connection: object) -> None:
        super().discard(connection)
        self._gone.set()

    async def none_left(self) -> None:
        while self:
            self._gone.clear()
            await self._gone.wait()


async def serve(
    front: Front, listening: socket.socket, stop: asyncio.Event, bounds: ClientBounds | None = None,
    *, tls: ssl.SSLContext | None = None, sweep_s: float = SWEEP_S,
) -> None:  # fmt: skip
    """Serve until `stop` is set; then no new request is taken and running ones are waited for."""
    connections = _Connections()
    loop = asyncio.get_running_loop()
    held = bounds or ClientBounds()

    def connection() -> Inbound:
        return Inbound(front, error_body, connections, front.refused, max_body=held.max_body, max_head=held.max_head)

    server = await loop.create_server(connection, sock=listening, ssl=tls)
    sweeper = loop.create_task(_sweep(front, connections, held, sweep_s))
    try:
        await stop.wait()
        server.close()
        for connected in list(connections):
            connected.drain()
        await connections.none_left()
        await front.counting.settle()
    finally:
        server.close()
        sweeper.cancel()
        for left in list(connections):
            left.close()
        for back_end in front.routes.back_ends:
            back_end.pool.retire()


async def _sweep(front: Front, connections: set[Inbound], bounds: ClientBounds, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        now = time.monotonic()
        for connection in list(connections):
            connection.sweep(now, request_s=bounds.request_s, idle_s=bounds.idle_s)
        for exchange in list(front.live):
            exchange.sweep(now)
