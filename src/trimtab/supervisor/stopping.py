"""Requests to end: from signals or from code. Handlers only record; the loop acts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
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
    """A Stop that SIGINT, SIGTERM and SIGHUP request; former handlers come back at the end. Main thread only.

    SIGHUP stays ignored where it was (`nohup`).
    """
    stop = Stop()

    def record(number: int, frame: FrameType | None) -> None:
        stop.request()

    assert threading.current_thread() is threading.main_thread()
    with _handled(record, [number for number in SIGNALS if number != signal.SIGHUP or not _ignored(number)]):
        yield stop


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, so that half-done work is taken back.

    Those that are ignored stay so. In another thread than the main one nothing changes.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    with _handled(interrupt, [number for number in SIGNALS[1:] if main and not _ignored(number)]):
        yield


def _ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None], numbers: Sequence[signal.Signals]) -> Iterator[None]:
    former = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)
