"""Ports of this host: which is free, and who holds one that is not."""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection
from dataclasses import dataclass

import psutil

from trimtab.errors import HostError
from trimtab.messages import Message, msg

FIRST_PORT, TRIED = 8000, 1000


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that listens on a port; `pid` 0 when this user may not see it."""

    pid: int
    command: str


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now, as vLLM binds: with SO_REUSEADDR."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError:
            return False
    return True


def require_address(host: str) -> None:
    """HostError when nothing can listen on `host` here: no address of this host, or a name that leads to none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((host, 0))
    except (OSError, UnicodeError) as error:  # UnicodeError: what cannot be part of a name
        reason = error.strerror if isinstance(error, OSError) else None
        raise HostError(
            msg("nothing can listen on {host} here: {reason}", host=repr(host), reason=reason or error),
            hint=msg("Name an address of this host: 127.0.0.1 for this host alone, 0.0.0.0 for all its networks."),
        ) from error


def free_port(host: str, taken: Collection[int] = (), first: int = FIRST_PORT) -> int:
    """The first port from `first` on that is free and not in `taken`. HostError when none of the next 1,000 is.

    It is this process's until it ends: another that looks for one before anything listens here passes it by.
    """
    for port in range(first, min(first + TRIED, 65536)):
        if port not in taken and is_free(host, port) and _reserve(port):
            return port
    raise HostError(
        msg("no free port from {first} to {last} on {host}", first=first, last=first + TRIED - 1, host=host),
        hint=msg("Name a free one: --port N."),
    )


_RESERVED: set[int] = set()


def _reserve(port: int) -> bool:
    """Take a name for the port on this host, which ends with the process; only Linux has such names."""
    if port in _RESERVED or sys.platform != "linux":
        return True
    named = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        named.bind(f"\0trimtab-port-{port}")
    except OSError:
        named.close()
        return False
    named.detach()  # it stays open until this process ends
    _RESERVED.add(port)
    return True


def holder(port: int) -> Holder | None:
    """Who listens on `port`, as far as this user may see; None when nobody seems to."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS, without root
        return Holder(0, "")
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return Holder(connection.pid or 0, _command(connection.pid))
    return None


def listeners() -> list[str]:
    """What listens on this host as far as this user may see, as "ADDRESS:PORT (COMMAND)": a process once, by port.

    The parts of an engine, which listen for one another alone, are left out.
    """
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS, without root
        return []
    found: dict[int, tuple[int, str]] = {}
    for c in connections:
        if c.status == psutil.CONN_LISTEN and c.pid is not None:
            found[c.pid] = min(found.get(c.pid, (1 << 16, "")), (c.laddr.port, c.laddr.ip))
    named = sorted((port, ip, _command(pid)) for pid, (port, ip) in found.items())
    return [f"{ip}:{port} ({command[:60].strip()})" for port, ip, command in named if "::" not in command[:12]]


def require_free(host: str, port: int) -> None:
    """HostError naming who holds `port`, when it is taken or cannot be bound."""
    if is_free(host, port):
        return
    found = holder(port)
    raise HostError(
        msg("port {port} on {host} is taken {by}", port=port, host=host, by=_by(found)),
        hint=msg("Use another: --port {free}.", free=free_port(host, first=min(port + 1, 65000))),
    )


def _by(found: Holder | None) -> Message:
    if found is None:
        return msg("or may not be bound by this user")
    if found.pid == 0:
        return msg("by a process of another user")
    return msg("by process {pid}: {command}", pid=found.pid, command=found.command)


def _command(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        process = psutil.Process(pid)
        return " ".join(" ".join(process.cmdline()).split())[:200] or process.name()
    except psutil.Error:
        return ""
