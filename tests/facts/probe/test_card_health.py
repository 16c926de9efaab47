"""What NVML tells of a card's health, from a stand-in that speaks as pynvml does."""

from __future__ import annotations

from typing import Any

from trimtab.facts.probe.card_health import Health, read_health


class NVMLError(Exception):
    """The library's own error."""


class Library:
    """The part of pynvml that is asked; a value that is an exception is raised."""

    NVMLError = NVMLError
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
    nvmlClocksEventReasonHwSlowdown = 0x8
    nvmlClocksEventReasonHwThermalSlowdown = 0x40
    nvmlClocksEventReasonHwPowerBrakeSlowdown = 0x80

    def __init__(self, *cards: dict[str, Any], starts: bool = True) -> None:
        self.cards, self.starts, self.stopped = cards, starts, 0

    def nvmlInit(self) -> None:
        if not self.starts:
            raise NVMLError

    def nvmlShutdown(self) -> None:
        self.stopped += 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self.cards[index]

    def _told(self, device: dict[str, Any], name: str) -> Any:
        if name not in device:
            raise NVMLError
        return device[name]

    def nvmlDeviceGetRemappedRows(self, device: dict[str, Any]) -> Any:
        return self._told(device, "rows")

    def nvmlDeviceGetRetiredPagesPendingStatus(self, device: dict[str, Any]) -> Any:
        return self._told(device, "pages")

    def nvmlDeviceGetTotalEccErrors(self, device: dict[str, Any], kind: int, counter: int) -> Any:
        assert (kind, counter) == (1, 0)
        return self._told(device, "errors")

    def nvmlDeviceGetPersistenceMode(self, device: dict[str, Any]) -> Any:
        return self._told(device, "persistence")

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: dict[str, Any]) -> Any:
        return self._told(device, "reasons")

    def nvmlDeviceGetMigMode(self, device: dict[str, Any]) -> Any:
        return self._told(device, "mig")

    def nvmlDeviceGetMaxMigDeviceCount(self, device: dict[str, Any]) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: dict[str, Any], number: int) -> int:
        if number not in device["slices"]:
            raise NVMLError
        return number


def test_a_card_that_tells_nothing_is_not_judged() -> None:
    assert read_health(1, Library({})) == (Health(),)


def test_a_sound_card() -> None:
    card = {"rows": (0, 0, 0, 0), "errors": 0, "persistence": 1, "reasons": 0x1, "mig": (0, 0)}
    library = Library(card)
    assert read_health(1, library) == (
        Health(persistence=True, uncorrected_errors=0, repair_pending=False, repair_failed=False),
    )
    assert library.stopped == 1


def test_bad_memory_heat_and_slices() -> None:
    card = {"rows": (1, 2, 1, 1), "pages": 0, "errors": 3, "reasons": 0x48, "mig": (1, 1), "slices": {0, 3}}
    (found,) = read_health(1, Library(card))
    assert (found.uncorrected_errors, found.repair_pending, found.repair_failed) == (3, True, True)
    assert found.slowdowns == ("thermal",)
    assert found.slices == 2


def test_hardware_alone_is_told() -> None:
    assert read_health(1, Library({"reasons": 0x8}))[0].slowdowns == ("hardware",)


def test_no_library_no_health() -> None:
    assert read_health(1, Library({}, starts=False)) == ()
    assert read_health(0) == ()
