"""The flight recorder: every 5 s while an engine serves, one line of its load and of the memory; 48 hours in 20 MB."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from trimtab.engine.flight import MemoryUsed, Moment, decode_moments, encode_moment, moment_of
from trimtab.engine.vitals import Vitals, read_vitals
from trimtab.supervisor.connection import Connection
from trimtab.supervisor.states import State

DIRECTORY = "flight"
EVERY_S = 5.0
SEGMENT_BYTES, SEGMENTS = 4_000_000, 5  # the oldest goes when a sixth begins: four whole ones hold 48 h of 460 B each
ANSWER_S = 4.0
SHARE = 400  # a look that took long is followed by a pause of so many times its CPU time: 0.25% of a core at most
JOIN_S = 5.0
_RECORDED = frozenset({"ready", "degraded", "draining"})


class FlightLog:
    """The moments of one server in files of bounded size. A full disk loses moments, it raises nothing."""

    def __init__(self, home: Path, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS) -> None:
        self._directory = home / DIRECTORY
        self._most, self._segments = segment_bytes, segments
        self._fd: int | None = None
        self._size, self._torn = 0, False

    def write(self, moment: Moment) -> None:
        """Append one line and force it to the disk, so that a host that dies keeps it."""
        with suppress(OSError):
            line = encode_moment(moment)
            if self._fd is None:
                self._open(self._newest())
            if self._size and self._size + len(line) > self._most:
                self._open(self._newest() + 1)
            if self._torn:
                line = b"\n" + line  # what was torn stays alone on its line
            assert self._fd is not None
            written = os.write(self._fd, line)
            self._size, self._torn = self._size + written, written < len(line)
            os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _newest(self) -> int:
        return max((int(file.stem) for file in segments(self._directory)), default=1)

    def _open(self, number: int) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._directory / f"{number:06}.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.close()
        self._fd, self._size = fd, os.fstat(fd).st_size
        self._torn = bool(self._size) and os.pread(fd, 1, self._size - 1) != b"\n"
        for file in segments(self._directory)[: -self._segments]:
            file.unlink(missing_ok=True)


def segments(directory: Path) -> list[Path]:
    """The files of a flight log, oldest first."""
    return sorted((f for f in directory.glob("*.jsonl") if f.stem.isdecimal()), key=lambda file: int(file.stem))


def read_flight(home: Path, start: float = 0.0, end: float = float("inf")) -> list[Moment]:
    """The moments from `start` to `end` (seconds since the epoch), oldest first."""
    found: list[Moment] = []
    for file in reversed(segments(home / DIRECTORY)):
        with suppress(FileNotFoundError):  # the recorder removed its oldest
            moments = decode_moments(file.read_bytes().split(b"\n"))
            found[:0] = [moment for moment in moments if start <= moment.at <= end]
            if moments and moments[0].at < start:
                break
    return found


class Recorder:
    """Records in a thread of its own; what goes wrong in it ends no server."""

    def __init__(self, home: Path, base_url: str, memory: Callable[[], MemoryUsed], every_s: float = EVERY_S) -> None:
        """`memory` is called in the recorder's thread."""
        self._home, self._url, self._memory, self._every_s = home, base_url, memory, every_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def state(self, state: State) -> None:
        """The server's new state: recording begins when it is ready, and ends with its engine."""
        if state not in _RECORDED:
            self._over.set()
        elif state is State.READY and (self._thread is None or self._over.is_set()):
            self.close()
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._over,), name="recorder", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _run(self, over: threading.Event) -> None:
        log, connection = FlightLog(self._home), Connection(self._url, {}, ANSWER_S)
        before: Vitals | None = None
        pause = 0.0
        while not over.wait(pause):
            begun, spent = time.monotonic(), time.thread_time()
            answer = connection.get("/metrics")
            now = read_vitals(answer.body) if answer.status == HTTPStatus.OK else None
            log.write(moment_of(time.time(), self._memory(), now, before, silent=not answer.status))
            before = now
            busy = (time.thread_time() - spent) * SHARE
            pause = max(0.0, max(self._every_s, busy) - (time.monotonic() - begun))
        connection.close()
        log.close()
