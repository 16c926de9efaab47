"""Work that a signal, a stop or the time ends, and work that ends by itself."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from trimtab.bench.stopping import SIGNALS, stop_at_signals, unless


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_work_and_the_handlers_are_gone_after(number: signal.Signals) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(60)
        finally:
            ended.append("cleaned up")

    async def main() -> bool:
        with stop_at_signals() as stop:
            stopped = await unless(stop, work())
        assert not asyncio.get_running_loop().remove_signal_handler(number)
        return stopped

    assert asyncio.run(main())
    assert ended == ["cleaned up"]


def test_work_that_ends_is_not_stopped_and_what_it_raises_comes_through() -> None:
    async def main() -> None:
        stop = asyncio.Event()
        assert not await unless(stop, asyncio.sleep(0), 60)
        assert await unless(stop, asyncio.sleep(60), 0)
        with pytest.raises(asyncio.InvalidStateError):
            await unless(stop, fails())

    async def fails() -> None:
        raise asyncio.InvalidStateError

    asyncio.run(main())


def test_outside_the_main_thread_no_handler_is_set() -> None:
    async def main() -> bool:
        with stop_at_signals() as stop:
            return await unless(stop, asyncio.sleep(0))

    with ThreadPoolExecutor() as threads:
        assert not threads.submit(asyncio.run, main()).result(20)
