"""The cards a replica runs on, as the memory model needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Vendor = Literal["nvidia", "amd", "intel", "cpu"]


@dataclass(frozen=True, slots=True)
class Card:
    """One card: GiB as the driver reports them; `unified`: the CPU shares its memory."""

    name: str
    total_gib: float
    capability: float = 8.0
    vendor: Vendor = "nvidia"
    unified: bool = False
