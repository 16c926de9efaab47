"""The access log: a JSON line a request, written by a thread of its own; keys are named by their ids alone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.errors import HostError
from trimtab.gateway.usage import Record
from trimtab.messages import Message, msg

EVERY_S = 0.5
LAST_S = 5.0
MOST = 100_000  # lines that wait for a disk; more are dropped and counted


class Refusal(msgspec.Struct, frozen=True):
    """A request that the gateway answered with an error of its own before any back end was asked."""

    path: str
    status: int
    code: str
    id: str
    peer: str


class AccessLog:
    """Lines are taken in the loop's thread and written in another. `file` "-": standard output."""

    def __init__(self, file: str, say: Callable[[Message], None]) -> None:
        """HostError when the file cannot be opened."""
        self.file, self._say = file, say
        self._lines: list[tuple[float, Record | Refusal]] = []
        self._dropped = 0
        try:
            self._fd = self._opened()
        except OSError as error:
            what = msg("the access log {file} cannot be written: {reason}", file=file, reason=error.strerror)
            raise HostError(what, hint=msg("Mend its path, owner or mode; a pipe needs a reader before.")) from error
        self._reopen = self._failing = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def add(self, line: Record | Refusal) -> None:
        """One request has ended."""
        if len(self._lines) < MOST:
            self._lines.append((time.time(), line))
        else:
            self._dropped += 1

    def reopen(self) -> None:
        """Open the file anew, which whoever rotates it has moved away; it is tried until it can be opened."""
        self._reopen = True

    def close(self) -> None:
        """Write what is left; whoever does not take it is waited for LAST_S."""
        self._end.set()
        self._thread.join(LAST_S)
        if self.file != "-" and not self._thread.is_alive():
            os.close(self._fd)

    def _opened(self) -> int:
        if self.file == "-":
            return 1
        # a pipe that nobody reads is an error instead of a wait; written to it is by a thread, which may wait
        fd = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o640)
        os.set_blocking(fd, True)
        return fd

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._end.wait(EVERY_S)
            try:
                self._write()
                self._failing = False
            except OSError as error:
                if not self._failing:
                    self._say(msg("the access log {file} cannot be written: {reason}", file=self.file,
                                  reason=error.strerror))  # fmt: skip
                self._failing = True

    def _write(self) -> None:
        if self._reopen and self.file != "-":
            former, self._fd = self._fd, self._opened()
            self._reopen = False
            os.close(former)
        lines, self._lines = self._lines, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self._say(msg("{n} lines of the access log were dropped", n=dropped))
        data = b"".join(msgspec.json.encode(_line(at, line)) + b"\n" for at, line in lines)
        while data:
            data = data[os.write(self._fd, data) :]


def _line(at: float, line: Record | Refusal) -> dict[str, Any]:
    found: dict[str, Any] = {"time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")}
    found |= msgspec.structs.asdict(line)
    for name in ("seconds", "first_byte_s"):
        if name in found:
            found[name] = round(found[name], 6)
    return found
