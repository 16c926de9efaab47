"""How well NVIDIA's cards are, as far as NVML tells: bad memory, held-back clocks, MIG devices. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
SLOWDOWNS = (
    ("nvmlClocksEventReasonHwThermalSlowdown", "thermal"),
    ("nvmlClocksEventReasonHwPowerBrakeSlowdown", "power brake"),
    ("nvmlClocksEventReasonHwSlowdown", "hardware"),
)
"""NVML's own reasons for a lowered clock that come from the hardware (nvml.h); "hardware" is the sum of the others."""


class Health(msgspec.Struct, frozen=True):
    """Of one card; None where the driver or the card does not tell."""

    persistence: bool | None = None
    uncorrected_errors: int | None = None
    repair_pending: bool | None = None
    repair_failed: bool | None = None
    slowdowns: tuple[str, ...] = ()
    slices: int | None = None


def read_health(count: int, library: Any = None) -> tuple[Health, ...]:
    """Of the first `count` cards, in NVML's order; empty where NVML does not start. `library` speaks as pynvml does."""
    if not count:
        return ()
    lib = library if library is not None else import_module("pynvml")
    try:
        lib.nvmlInit()
    except lib.NVMLError:
        return ()
    try:
        return tuple(_health(lib, index) for index in range(count))
    finally:
        lib.nvmlShutdown()


def _health(lib: Any, index: int) -> Health:
    def told(ask: Callable[[Any], T]) -> T | None:
        try:
            return ask(lib.nvmlDeviceGetHandleByIndex(index))
        except lib.NVMLError:
            return None

    rows = told(lambda device: lib.nvmlDeviceGetRemappedRows(device))
    pages = told(lambda device: lib.nvmlDeviceGetRetiredPagesPendingStatus(device))
    waiting = [bool(part) for part in (rows[2] if rows else None, pages) if part is not None]
    errors = told(
        lambda device: lib.nvmlDeviceGetTotalEccErrors(
            device, lib.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, lib.NVML_VOLATILE_ECC
        )
    )
    persistence = told(lambda device: lib.nvmlDeviceGetPersistenceMode(device))
    return Health(
        persistence=None if persistence is None else bool(persistence),
        uncorrected_errors=None if errors is None else int(errors),
        repair_pending=any(waiting) if waiting else None,
        repair_failed=bool(rows[3]) if rows else None,
        slowdowns=_slowdowns(lib, told(lambda device: lib.nvmlDeviceGetCurrentClocksEventReasons(device))),
        slices=told(lambda device: _slices(lib, device)),
    )


def _slowdowns(lib: Any, reasons: int | None) -> tuple[str, ...]:
    found = [word for name, word in SLOWDOWNS if reasons is not None and reasons & int(getattr(lib, name))]
    return tuple(found[:-1] if len(found) > 1 and found[-1] == "hardware" else found)


def _slices(lib: Any, device: Any) -> int | None:
    """How many MIG devices the card has; None where it is not in MIG mode."""
    if not lib.nvmlDeviceGetMigMode(device)[0]:
        return None
    found = 0
    for number in range(int(lib.nvmlDeviceGetMaxMigDeviceCount(device))):
        try:
            lib.nvmlDeviceGetMigDeviceHandleByIndex(device, number)
        except lib.NVMLError:
            continue  # no device in this place
        found += 1
    return found
