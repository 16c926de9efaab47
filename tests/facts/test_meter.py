"""Memory read again and again: of the named cards, of a host without any, of a card that was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.nvml import Card, FakeNvml
from trimtab.facts.probe.gpus import DRIVER_NOT_LOADED
from trimtab.facts.probe.host import available_memory_bytes
from trimtab.facts.probe.meter import Meter, Reading

GIB = 2**30
CARDS = [Card("H200", 140 * GIB, 40 * GIB), Card("H200", 140 * GIB, 139 * GIB)]


@pytest.mark.parametrize(
    ("devices", "used"), [((), (102_400, 1024)), (("1",), (1024,)), (("GPU-0",), (102_400,)), (("7",), None)]
)
def test_the_named_cards(devices: tuple[str, ...], used: tuple[int, ...] | None) -> None:
    nvml = FakeNvml(CARDS)
    meter = Meter(devices, nvml, host=lambda: 3 * GIB)
    assert meter.read().gpu_used == meter.read().gpu_used == used
    assert nvml.started == 1
    meter.close()
    assert nvml.stopped == 1


def test_no_driver_and_no_word_of_the_host() -> None:
    meter = Meter((), FakeNvml(refuse={"start": DRIVER_NOT_LOADED}), host=lambda: None)
    assert meter.read() == Reading()
    meter.close()


def test_a_card_that_was_lost() -> None:
    nvml = FakeNvml(CARDS)
    meter = Meter((), nvml, host=lambda: GIB)
    assert meter.read().gpu_total == (143_360, 143_360)
    nvml.refuse["memory"] = 15
    assert meter.read() == Reading(None, None, 1024)


def test_free_memory_of_this_host_and_of_a_container(tmp_path: Path) -> None:
    assert (available_memory_bytes() or 0) > 2**20
    assert available_memory_bytes(tmp_path) is None
