"""Work that Ctrl-C or SIGTERM ends early, with what there is until then."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_at_signals() -> Iterator[asyncio.Event]:
    """Set by SIGINT or SIGTERM until the block ends; by nothing outside the main thread, where no signal arrives."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = SIGNALS if threading.current_thread() is threading.main_thread() else ()
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def unless(stop: asyncio.Event, work: Awaitable[Any], within_s: float | None = None) -> bool:
    """Do `work` until it is done, `stop` is set or the time is over; whether it was ended before it was done.

    Raises what work that came to its end raised.
    """
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return False
        return True
    finally:
        for one in (working, stopping):
            one.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
