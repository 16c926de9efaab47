"""Tell systemd how the server is (sd_notify(3)): one datagram a word, to the socket that NOTIFY_SOCKET names."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from trimtab.supervisor.states import State

SOCKET, WATCHDOG, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
VARIABLES = (SOCKET, WATCHDOG, WATCHDOG_PID)  # ours alone: an engine must not speak for its supervisor


class Notifier:
    """Says nothing where nobody listens."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get(SOCKET, "")
        self.watchdog_s = _watchdog_s(environ) if self._address else None
        self._told_ready = False

    def state(self, state: State, reason: str) -> None:
        """A new state as STATUS; READY once, when it first serves; STOPPING when it is about to end."""
        words = [f"STATUS={state.value}: {' '.join(reason.split())}"]
        if state is State.READY and not self._told_ready:
            self._told_ready = True
            words.append("READY=1")
        if state is State.DRAINING:
            words.append("STOPPING=1")
        self._send("\n".join(words))

    def alive(self) -> None:
        """The loop turns: to be said more often than each `watchdog_s`."""
        if self.watchdog_s is not None:
            self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            try:
                out.sendto(text.encode(), address)
            except OSError:
                return  # the service manager is busy or gone; the server does not depend on it


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    """The interval that systemd wants to hear from this process in; None where it does not."""
    text, pid = environ.get(WATCHDOG, ""), environ.get(WATCHDOG_PID, "")
    if not text.isdecimal() or (pid and pid != str(os.getpid())):
        return None
    return int(text) / 1e6
