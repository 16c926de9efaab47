"""Listen, sweep and stop: the loop around the gateway's connections."""

from __future__ import annotations

import asyncio
import socket
import time
from functools import partial

from trimtab.gateway.errors import body as error_body
from trimtab.gateway.front import Front
from trimtab.gateway.inbound import Inbound

SWEEP_S = 1.0
REQUEST_S, IDLE_S = 30.0, 75.0


async def serve(front: Front, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; then no new request is taken and running ones are waited for."""
    connections: set[Inbound] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(Inbound, front, error_body, connections), sock=listening)
    sweeper = loop.create_task(_sweep(front, connections))
    try:
        await stop.wait()
    finally:
        server.close()
        sweeper.cancel()
        await front.quiet()
        for connection in list(connections):
            connection.close()


async def _sweep(front: Front, connections: set[Inbound]) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        now = time.monotonic()
        for connection in list(connections):
            connection.sweep(now, request_s=REQUEST_S, idle_s=IDLE_S)
        for exchange in list(front.live):
            exchange.sweep(now)
