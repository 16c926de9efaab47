"""Cards as NVML tells of them, and each way in which there are none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fakes.nvml import Card, FakeNvml
from trimtab.facts.probe.gpus import Gpu, GpuProcess, Nvml, read_gpus

GIB = 2**30


def test_reads_each_card() -> None:
    nvml = FakeNvml(
        [
            Card("NVIDIA H200", 140 * GIB, 100 * GIB, processes=[(41, 40 * GIB), (42, None)]),
            Card("NVIDIA A10", 22 * GIB, 22 * GIB, (8, 6), mig=None),
        ]
    )
    found = read_gpus(nvml)
    assert (found.driver_version, found.cuda_version, found.reason) == ("580.95.05", (13, 0), None)
    h200 = (GpuProcess(41, 40 * GIB), GpuProcess(42, None))
    assert found.cards == (
        Gpu(0, "GPU-0", "NVIDIA H200", 140 * GIB, 100 * GIB, (9, 0), h200),
        Gpu(1, "GPU-1", "NVIDIA A10", 22 * GIB, 22 * GIB, (8, 6)),
    )
    assert (nvml.started, nvml.stopped) == (1, 1)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (12, "no NVIDIA driver is installed"),
        (9, "installed but not loaded"),
        (4, "may not ask"),
        (18, "different versions"),
        (999, "refuses: NVML error 999"),
    ],
)
def test_no_nvidia_is_a_reason(code: int, said: str) -> None:
    found = read_gpus(FakeNvml(refuse={"start": code}))
    assert found.cards == ()
    assert said in str(found.reason)


def test_driver_without_cards() -> None:
    assert "580.95.05 sees no NVIDIA card" in str(read_gpus(FakeNvml()).reason)


def test_a_card_that_fell_off_the_bus() -> None:
    nvml = FakeNvml([Card("NVIDIA A10", GIB, GIB)], refuse={"memory": 15})
    assert "NVML error 15" in str(read_gpus(nvml).reason)
    assert nvml.stopped == 1


def test_processes_that_the_driver_hides() -> None:
    found = read_gpus(FakeNvml([Card("NVIDIA A10", GIB, GIB, processes=[(1, 1)])], refuse={"processes": 4}))
    assert found.cards[0].processes == ()


def test_the_fake_has_the_real_interface() -> None:
    asked: Nvml = FakeNvml()
    assert {n for n in vars(Nvml) if not n.startswith("_")} <= set(dir(asked))


def test_the_real_library_answers_on_this_host() -> None:
    code = "from trimtab.facts.probe.gpus import read_gpus; g = read_gpus(); print(bool(g.cards) != bool(g.reason))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
