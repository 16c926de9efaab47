"""Memory of the cards and of the host, read again and again: NVML stays open between two readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from trimtab.facts.probe.gpus import DriverNvml, Nvml, NvmlError
from trimtab.facts.probe.host import available_memory_bytes

_MIB = 2**20


class Reading(msgspec.Struct, frozen=True):
    """In MiB, a number a card; None where nobody tells."""

    gpu_used: tuple[int, ...] | None = None
    gpu_total: tuple[int, ...] | None = None
    host_free: int | None = None


class Meter:
    """Opening NVML takes up to seconds on hosts with many cards; a reading takes microseconds a card."""

    def __init__(
        self,
        devices: Sequence[str] = (),
        nvml: Nvml | None = None,
        host: Callable[[], int | None] = available_memory_bytes,
    ) -> None:
        """`devices` are the cards' numbers or UUIDs; none named: all cards of this host."""
        self._devices, self._host = tuple(devices), host
        self._nvml: Nvml | None = nvml if nvml is not None else DriverNvml()
        self._cards: tuple[int, ...] = ()
        self._opened = False

    def read(self) -> Reading:
        """What is used now. A card that was lost makes its host's cards absent from the reading."""
        free = self._host()
        used: list[int] = []
        totals: list[int] = []
        try:
            nvml = self._open()
            if nvml is not None:
                for card in self._cards:
                    total, left = nvml.memory(card)
                    used.append((total - left) // _MIB)
                    totals.append(total // _MIB)
        except NvmlError:
            used = []
        host_free = free // _MIB if free is not None else None
        return Reading(tuple(used) or None, tuple(totals) if used else None, host_free)

    def close(self) -> None:
        if self._opened and self._nvml is not None:
            self._nvml.stop()
        self._nvml, self._opened = None, False

    def _open(self) -> Nvml | None:
        if self._nvml is None or self._opened:
            return self._nvml
        try:
            self._nvml.start()
        except NvmlError:
            self._nvml = None  # a host without NVIDIA is asked once
            return None
        self._opened = True
        self._cards = tuple(_indices(self._nvml, self._devices))
        return self._nvml


def _indices(nvml: Nvml, devices: tuple[str, ...]) -> list[int]:
    count = nvml.count()
    if not devices:
        return list(range(count))
    return [i for i in range(count) if str(i) in devices or any(nvml.uuid(i).startswith(d) for d in devices)]
