"""What is written in one turn of the loop, sent together once all that came in was read."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary


class Turn:
    """Of one loop. The first of many writes then wakes another process, not each of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._soon = loop.call_soon
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send at the turn's end, unless the transport is closing by then."""
        if not self._waiting:
            self._soon(self.send)
        self._waiting.append((transport, data))

    def send(self) -> None:
        """Send all of it now."""
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                transport.write(data)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, Turn] = WeakKeyDictionary()


def turn() -> Turn:
    """Of the running loop."""
    loop = asyncio.get_running_loop()
    found = _TURNS.get(loop)
    if found is None:
        found = _TURNS[loop] = Turn(loop)
    return found
