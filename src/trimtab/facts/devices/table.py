"""The table of devices: their names, memory as the driver reports it, speeds, and where each figure was read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from trimtab import shipped
from trimtab.facts.derived import Source

NOT_READ = "assumed"
"""The key of a figure for which no source could be read."""


class Memory(msgspec.Struct, frozen=True):
    """One memory size of a device. `read` is a key of the sources; `note` is what stood there or what was concluded."""

    nominal_gb: float
    usable_gib: float
    source: Source
    read: str
    note: str
    rare: bool = False
    bandwidth_gb_s: float | None = None
    """Where it differs from the device's."""


class Device(msgspec.Struct, frozen=True):
    """One device. `mig`: profile -> GiB as the driver lists them, None where they were not seen.

    `read`: figure ("capability", "bandwidth_gb_s", "tflops", "link", "mig") -> key of the source it was read in.
    """

    name: str
    aliases: tuple[str, ...]
    vendor: str
    architecture: str
    capability: str | None
    memories: tuple[Memory, ...]
    bandwidth_gb_s: float | None
    link: str
    link_gb_s: float | None
    mig: dict[str, float | None]
    unified_memory: bool
    read: dict[str, str]
    tflops: float | None = None
    """Dense peak in 16 bit."""


class _File(msgspec.Struct):
    sources: dict[str, str]
    devices: tuple[Device, ...]


@cache
def _file() -> _File:
    data = shipped.read("trimtab.facts.devices", "devices.json")
    return msgspec.json.decode(data, type=_File)


def devices() -> tuple[Device, ...]:
    """Every device, in the table's order."""
    return _file().devices


def sources() -> Mapping[str, str]:
    """What the keys of `read` stand for."""
    return _file().sources


@cache
def by_name() -> Mapping[str, Device]:
    """Every name and alias, squeezed -> device."""
    found: dict[str, Device] = {}
    for device in devices():
        for name in (device.name, *device.aliases):
            found.setdefault(squeeze(name), device)
    return found


def squeeze(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return re.sub(r"[^a-z0-9+]", "", name.lower())
