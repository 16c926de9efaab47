"""An NVML that answers from records instead of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.facts.probe.gpus import NvmlError


@dataclass
class Card:
    name: str
    total: int
    free: int
    capability: tuple[int, int] = (9, 0)
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    mig: bool | None = False  # None: this card has no such mode


@dataclass
class FakeNvml:
    """Implements `Nvml`; `refuse` names the call that fails and NVML's error number."""

    cards: list[Card] = field(default_factory=list)
    driver: str = "580.95.05"
    cuda: int = 13000
    refuse: dict[str, int] = field(default_factory=dict)
    started: int = 0
    stopped: int = 0

    def _may(self, call: str) -> None:
        if call in self.refuse:
            raise NvmlError(self.refuse[call], f"NVML error {self.refuse[call]}")

    def start(self) -> None:
        self._may("start")
        self.started += 1

    def stop(self) -> None:
        self.stopped += 1

    def driver_version(self) -> str:
        self._may("driver_version")
        return self.driver

    def cuda_version(self) -> int:
        return self.cuda

    def count(self) -> int:
        return len(self.cards)

    def uuid(self, index: int) -> str:
        return f"GPU-{index}"

    def name(self, index: int) -> str:
        return self.cards[index].name

    def memory(self, index: int) -> tuple[int, int]:
        self._may("memory")
        return self.cards[index].total, self.cards[index].free

    def compute_capability(self, index: int) -> tuple[int, int]:
        return self.cards[index].capability

    def processes(self, index: int) -> Sequence[tuple[int, int | None]]:
        self._may("processes")
        return self.cards[index].processes

    def mig_enabled(self, index: int) -> bool:
        mig = self.cards[index].mig
        if mig is None:
            raise NvmlError(3, "Not Supported")
        return mig
