"""Several processes on one port, and their parent: it starts, watches, restarts and ends them, and serves nothing.

Each has a listening socket of its own (SO_REUSEPORT), which the parent keeps open: what was connected to a worker that
died waits for the next one. One socket for all was measured too: a burst of 64 connections often went to one worker.
Each says twice a second that its loop runs. One that is silent hangs: it is killed and started again as if it had died.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from trimtab.errors import HostError
from trimtab.messages import Message, msg

STOPPING = (signal.SIGTERM, signal.SIGINT)
WATCHED = (*STOPPING, signal.SIGHUP, signal.SIGCHLD)
PAUSE_S = 1.0  # before a worker that died is started again, and the least life that counts as one
FAILURES = 5  # lives shorter than that, in a row over all workers, after which the gateway ends
KILL_S = 5.0  # after the drain's bound
LOOK_S = 1.0  # between two looks at who was silent
SILENT_LOOKS = (
    10  # in a row after which a worker hangs: looks, not seconds, so that time in which the parent was stopped
)
START_LOOKS = 60  # too does not count; the first word may take longer, since a store may have to be waited for


class Place:
    """What a worker is told by its parent: its number, its socket, and how it says that it serves."""

    def __init__(self, number: int, listening: socket.socket, parent: int, told: int) -> None:
        self.number, self.listening = number, listening
        self.parent = parent  # a pipe that ends when the parent does
        self._told = told

    def ready(self) -> None:
        """Called once signals are minded and connections are taken."""
        self.alive()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)

    def alive(self) -> None:
        """Called in the loop again and again from then on: one that hangs cannot call it."""
        with suppress(
            BlockingIOError
        ):  # a parent that was stopped reads nothing; what it missed need not be said twice
            os.write(self._told, b"%d\n" % os.getpid())


Serve = Callable[[Place], None]


def supervise(
    sockets: Sequence[socket.socket], serve: Serve, *, drain_s: float, say: Callable[[Message], None],
    all_ready: Callable[[], None], lifeline: int | None = None,
) -> None:  # fmt: skip
    """Run one worker a socket until told to stop; `all_ready` is called once each served. HostError: they die.

    `lifeline`: a pipe whose end is a request to stop.
    """
    _Parent(sockets, serve, drain_s, say, all_ready, lifeline).run()


class _Parent:
    def __init__(
        self, sockets: Sequence[socket.socket], serve: Serve, drain_s: float, say: Callable[[Message], None],
        all_ready: Callable[[], None], lifeline: int | None,
    ) -> None:  # fmt: skip
        self._lifeline = lifeline
        self._sockets, self._serve, self._drain_s, self._say, self._all_ready = (
            sockets, serve, drain_s, say, all_ready,
        )  # fmt: skip
        self._workers: dict[int, tuple[int, float]] = {}  # pid -> number, when it was started
        self._due: dict[int, float] = {}  # number -> when it is started again
        self._served: set[int] = set()
        self._silent: dict[int, tuple[int, int]] = {}  # pid -> for how many looks, and for how many it may be
        self._look_at = 0.0
        self._failures = 0
        self._kill_at: float | None = None
        self._alive, self._ends = os.pipe()  # the workers read one end; the other closes when this process ends
        self._hears, self._told = os.pipe()

    def run(self) -> None:
        former = {number: signal.signal(number, lambda *_: None) for number in WATCHED}
        wake, waker = os.pipe()
        for fd in (wake, waker, self._hears, self._told):
            os.set_blocking(fd, False)
        before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            for number in range(len(self._sockets)):
                self._start(number)
            self._watch(wake)
        finally:
            self._kill()
            signal.set_wakeup_fd(before)
            for signal_number, handler in former.items():
                signal.signal(signal_number, handler)
            for fd in (wake, waker, self._alive, self._ends, self._hears, self._told):
                os.close(fd)

    def _watch(self, wake: int) -> None:
        while self._workers or (self._due and self._kill_at is None):
            heard = [wake, self._hears] if self._lifeline is None else [wake, self._hears, self._lifeline]
            ready, _, _ = select.select(heard, [], [], self._patience())
            self._hear()
            if self._lifeline is not None and self._lifeline in ready:
                self._lifeline = None
                self._signalled(signal.SIGTERM)
            for number in _read(wake):
                self._signalled(number)
            self._reap()
            now = time.monotonic()
            if self._kill_at is not None:
                if now >= self._kill_at:
                    self._kill()
                continue
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                self._look_for_hung()
            for worker in [worker for worker, due in self._due.items() if due <= now]:
                del self._due[worker]
                self._start(worker)

    def _patience(self) -> float:
        times = [self._look_at, *self._due.values()] if self._kill_at is None else [self._kill_at]
        return max(0.0, min(times) - time.monotonic())

    def _start(self, number: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)  # until the worker minds them itself
        pid = os.fork()
        if pid == 0:
            self._become(number)
        self._workers[pid] = (number, time.monotonic())
        self._silent[pid] = 0, START_LOOKS
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)

    def _become(self, number: int) -> None:
        """The worker's whole life; it never returns."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for fd in (self._ends, self._hears, *((self._lifeline,) if self._lifeline is not None else ())):
                os.close(fd)
            for other, listening in enumerate(self._sockets):
                if other != number:
                    listening.close()
            self._serve(Place(number, self._sockets[number], self._alive, self._told))
            status = 0
        finally:  # the process ends here, whatever happened: nothing may unwind into the parent's code
            with suppress(Exception):
                if status:
                    sys.excepthook(*sys.exc_info())
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _hear(self) -> None:
        heard = self._workers.keys() & {int(line) for line in _read(self._hears).split()}
        self._silent.update(dict.fromkeys(heard, (0, SILENT_LOOKS)))
        before, self._served = len(self._served), self._served | {self._workers[pid][0] for pid in heard}
        if before < len(self._served) == len(self._sockets):
            self._all_ready()

    def _look_for_hung(self) -> None:
        for pid, (silent, most) in self._silent.items():
            self._silent[pid] = silent + 1, most
            if silent + 1 == most:
                number = self._workers[pid][0] + 1
                self._say(msg("worker {n} (process {pid}) hangs: it has said nothing for {seconds} s; it is killed",
                              n=number, pid=pid, seconds=most * LOOK_S))  # fmt: skip
                os.kill(pid, signal.SIGKILL)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._pass_on(signal.SIGHUP)
        elif number in STOPPING:
            if self._kill_at is None:
                self._kill_at = time.monotonic() + self._drain_s + KILL_S
                for listening in self._sockets:
                    listening.close()
            self._pass_on(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        for pid in self._workers:
            os.kill(pid, number)  # not reaped yet, so the pid is its own

    def _reap(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number, started = self._workers.pop(pid, (-1, 0.0))
            self._silent.pop(pid, None)
            if number < 0 or self._kill_at is not None:
                continue
            code = os.waitstatus_to_exitcode(status)
            now = time.monotonic()
            self._failures = self._failures + 1 if now - started < PAUSE_S else 0
            self._say(msg("worker {n} (process {pid}) ended with {code}; it is started again", n=number + 1, pid=pid,
                          code=code))  # fmt: skip
            if self._failures >= FAILURES:
                raise HostError(
                    msg("the gateway's workers end as soon as they are started"),
                    hint=msg("What they said stands above."),
                )
            self._due[number] = now + (PAUSE_S if self._failures else 0.0)

    def _kill(self) -> None:
        self._pass_on(signal.SIGKILL)
        while self._workers:
            pid, _ = os.waitpid(-1, 0)
            self._workers.pop(pid, None)


def _read(fd: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(fd, 1 << 16)  # all that a pipe holds: no line is cut
    return b""
