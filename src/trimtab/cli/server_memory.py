"""The memory of a server on this host: the processes behind its port, and the cards that they use."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

import psutil

from trimtab.bench.inquiry import Memory, MemorySource
from trimtab.facts.probe.meter import Meter
from trimtab.supervisor import ports

_MIB = 2**20


def memory_of(url: str, devices: Sequence[str] = ()) -> MemorySource | None:
    """Looks into the server at `url`; None when it is of another host, or of another user.

    `devices`: its cards; none named: all of this host, so that what others use of them counts too.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not _is_here(parts.hostname or ""):
        return None
    holder = ports.holder(port)
    if holder is None or not holder.pid:
        return None
    try:
        root = _launcher(psutil.Process(holder.pid))
    except psutil.Error:
        return None
    meter = Meter(devices)

    def look() -> Memory | None:
        try:
            if not root.is_running() or root.status() == psutil.STATUS_ZOMBIE:
                return None
            held = sum(_resident(process) for process in (root, *root.children(recursive=True)))
        except psutil.Error:
            return None
        used = meter.read().gpu_used
        return Memory(held / _MIB, float(sum(used)) if used is not None else None)

    return look


def _is_here(host: str) -> bool:
    try:
        found = {ipaddress.ip_address(str(entry[4][0]).split("%")[0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):
        return False
    own = {address.address.split("%")[0] for group in psutil.net_if_addrs().values() for address in group}
    return any(address.is_loopback or str(address) in own for address in found)


def _launcher(process: psutil.Process) -> psutil.Process:
    """The first process of the server: with several API servers each listens, and all have one parent."""
    parent = process.parent()
    while parent is not None and _is_vllm(parent):
        process, parent = parent, parent.parent()
    return process


def _is_vllm(process: psutil.Process) -> bool:
    words = process.cmdline()[:4]
    return any("vllm" in word.lower() for word in words) and not any("trimtab" in word for word in words)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0  # it ended between the list and the look
