"""Requests to end: from signals or from code. Handlers only record; the loop acts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C; kill, systemd, docker stop; the terminal closed


class Stop:
    """Counts requests to end: the first drains, the second ends at once. Safe from threads and signal handlers."""

    def __init__(self) -> None:
        self.times = 0
        self._listeners: list[Callable[[int], None]] = []

    def request(self) -> None:
        self.times += 1
        for listener in self._listeners:
            listener(self.times)

    def listen(self, listener: Callable[[int], None]) -> None:
        """Call `listener` with the count at each request, and now if there were some already."""
        self._listeners.append(listener)
        if self.times:
            listener(self.times)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A Stop that SIGINT, SIGTERM and SIGHUP request; former handlers come back at the end. Main thread only."""
    stop = Stop()

    def record(number: int, frame: FrameType | None) -> None:
        stop.request()

    assert threading.current_thread() is threading.main_thread()
    former = {number: signal.signal(number, record) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
