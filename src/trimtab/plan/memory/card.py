"""The cards a replica runs on, as the memory model needs them."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.facts.gpu import Gpu, GpuSet

Vendor = Literal["nvidia", "amd", "intel", "cpu"]
_VENDORS: dict[str, Vendor] = {"amd": "amd", "intel": "intel", "cpu": "cpu"}
_UNKNOWN_CAPABILITY = 8.0


class Card(msgspec.Struct, frozen=True):
    """One card: GiB as the driver reports them; `unified`: the CPU shares its memory; `nvlink`: cards are linked.

    `taken_gib` is what other processes hold; speeds (`tflops`: dense, 16 bit; `link_gb_s`: both directions together)
    are None where no source tells them.
    """

    name: str
    total_gib: float
    capability: float = _UNKNOWN_CAPABILITY
    vendor: Vendor = "nvidia"
    unified: bool = False
    nvlink: bool = False
    taken_gib: float = 0.0
    bandwidth_gb_s: float | None = None
    tflops: float | None = None
    link_gb_s: float | None = None


def cards_of(gpus: GpuSet) -> tuple[Card, ...]:
    """One Card per GPU, in the set's order."""
    return tuple(card for number, gpu in gpus.members for card in [_card(gpu)] * number)


def _card(gpu: Gpu) -> Card:
    capability = gpu.cuda_capability
    return Card(
        name=gpu.name,
        total_gib=gpu.usable_gib.value,
        capability=float(f"{capability[0]}.{capability[1]}") if capability else _UNKNOWN_CAPABILITY,
        vendor=_VENDORS.get(gpu.vendor.lower(), "nvidia"),
        unified=gpu.unified_memory,
        nvlink="nvlink" in gpu.link.lower(),
        bandwidth_gb_s=gpu.bandwidth_gb_s,
        tflops=gpu.tflops,
        link_gb_s=gpu.link_gb_s,
    )
