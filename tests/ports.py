"""Ports for what a test starts: its own until the test run ends, and none that the system gives to a connection."""

from __future__ import annotations

from trimtab.supervisor import ports

FIRST = 20_000
_GIVEN: set[int] = set()


def free_port() -> int:
    """One on 127.0.0.1 where nothing listens; no other test run of this host is given it meanwhile."""
    port = ports.free_port("127.0.0.1", _GIVEN, first=FIRST)
    _GIVEN.add(port)
    return port
