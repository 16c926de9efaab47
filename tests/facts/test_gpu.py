"""GPU specs as people write them, and what the table says of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import UsageError
from trimtab.facts.devices.table import NOT_READ, Device, devices, sources
from trimtab.facts.gpu import cpu, gpu_names, parse_gpus

SPELLINGS = {
    "24GB mobile RTX 5090": (1, "RTX 5090 Laptop", 23.4),
    "2x 16GB laptop RTX 4090": (2, "RTX 4090 Laptop", 15.57),
    "80GB H100": (1, "H100", 79.2),
    "2x 24 GB RTX 3090": (2, "RTX 3090", 23.58),
    "RTX 4090 x 4": (4, "RTX 4090", 23.5),
    "8xA10": (8, "A10", 22.05),
    "H200": (1, "H200", 139.8),
    "2xH100-80": (2, "H100", 79.2),
    "24GiB": (1, "24 GiB", 24.0),
    "4xRTX A6000 48GB": (4, "RTX A6000", 47.5),
    "1xH200 141GB": (1, "H200", 139.8),
    "8 x A10": (8, "A10", 22.05),
    "8x NVIDIA A100-SXM4-40GB": (8, "A100", 39.4),
    "NVIDIA GeForce RTX 3090": (1, "RTX 3090", 23.58),
    "H100 80GB HBM3": (1, "H100", 79.2),
    "H100 NVL 94GB": (1, "H100 NVL", 93.1),
    "H20 141GB (implied: 0.05 utilisation = 6.99 GiB)": (1, "H20", 139.8),
    "H20 96GB": (1, "H20", 95.0),
    "RTX 4090 48GB (modded)": (1, "RTX 4090", 47.5),
    "RTX 4090 D 24GB": (1, "RTX 4090 D", 23.55),
    "RTX 6000 Ada 48GB": (1, "RTX 6000 Ada", 47.36),
    "RTX PRO 6000 96GB": (1, "RTX PRO 6000", 94.97),
    "DGX Spark GB10 128GB": (1, "GB10", 121.6),
    "MI300X 192GB": (1, "MI300X", 191.98),
    "B200 180GB": (1, "B200", 178.36),
    "GH200 96GB": (1, "GH200", 94.5),
    "T4 16GB": (1, "T4", 14.56),
    "80GB card (A100/H100)": (1, "80 GB card", 78.4),
    "24GB GeForce (RTX 3090/4090 class)": (1, "24 GB card", 23.52),
    "AMD ROCm device (80 GiB reported)": (1, "80 GiB", 80.0),
    "A40-48Q (vGPU) 48GB": (1, "A40-48Q", 47.74),
    "RTX 2060 12GB": (1, "RTX 2060", 11.56),
    "L40S": (1, "L40S", 44.42),
    "NVIDIA A100-SXM4-80GB": (1, "A100", 79.15),
    "NVIDIA A100 80GB PCIe": (1, "A100 PCIe", 79.25),
    "NVIDIA A100-PCIE-40GB": (1, "A100 PCIe", 39.43),
    "NVIDIA H100 PCIe": (1, "H100 PCIe", 79.1),
    "nvidia_h100_80gb_hbm3": (1, "H100", 79.2),
    "Tesla V100-SXM2-32GB": (1, "V100", 31.73),
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": (1, "RTX PRO 6000", 94.97),
    "NVIDIA GH200 144G HBM3e": (1, "GH200", 142.5),
    "NVIDIA B300 SXM6 AC": (1, "B300", 267.69),
    "NVIDIA GeForce RTX 4060 Laptop GPU": (1, "RTX 4060 Laptop", 7.63),
    "NVIDIA RTX 5000 Ada Generation Laptop GPU": (1, "RTX 5000 Ada Laptop", 15.57),
    "NVIDIA Thor": (1, "Jetson AGX Thor", 122.8),
    "AMD Instinct MI300X OAM": (1, "MI300X", 191.98),
    "h100 sxm": (1, "H100", 79.2),
    "2 x 4090": (2, "RTX 4090", 23.5),
    "RTX4090*2": (2, "RTX 4090", 23.5),
    "RTX 4090 ×2": (2, "RTX 4090", 23.5),
    "4090 24GB x4": (4, "RTX 4090", 23.5),
    "3090 24G 双卡": (2, "RTX 3090", 23.58),
    "8卡 A100 80G": (8, "A100", 79.15),
    "4张3090": (4, "RTX 3090", 23.58),
    "单卡4090": (1, "RTX 4090", 23.5),
    "RTX 4090 48G 魔改": (1, "RTX 4090", 47.5),
    "3090 Ti": (1, "RTX 3090 Ti", 23.55),
    "7900 XTX": (1, "Radeon RX 7900 XTX", 23.98),
    "dual 3090": (2, "RTX 3090", 23.58),
    "8 H100s": (8, "H100", 79.2),
    "H100:8": (8, "H100", 79.2),
    "A100-80GB:4": (4, "A100", 79.15),
    "A100 (40GB)": (1, "A100", 39.4),
    "80G A100": (1, "A100", 79.15),
    "GPU Max 1550": (1, "Data Center GPU Max 1550", 121.6),
    "MI300x8": (8, "MI300X", 191.98),
    "24 GB": (1, "24 GB card", 23.52),
    "2*24G": (2, "24 GB card", 23.52),
    "A10G x 4 (g5.12xlarge)": (4, "A10G", 22.05),
    "2080ti-22g": (1, "RTX 2080 Ti", 21.67),
    "1xAMD ROCm device (80 GiB reported)": (1, "80 GiB", 80.0),
}


@pytest.mark.parametrize("spec", SPELLINGS)
def test_spellings(spec: str) -> None:
    expected = SPELLINGS[spec]
    if expected is None:
        with pytest.raises(UsageError):
            parse_gpus(spec)
        return
    found = parse_gpus(spec)
    assert (found.count, found.gpu.name, found.gpu.usable_gib.value) == (
        *expected[:2],
        pytest.approx(expected[2], abs=0.02),
    )
    assert not found.notes


@pytest.mark.parametrize("name", gpu_names())
def test_every_name_reads_as_itself(name: str) -> None:
    found = parse_gpus(f"2x{name}")
    assert (found.count, found.gpu.name) == (2, name)
    assert 0 < found.gpu.usable_gib.value <= found.gpu.nominal_gb


def test_the_table_says_where_memory_is_from() -> None:
    assert parse_gpus("H200").gpu.usable_gib.source == "measured"
    assert parse_gpus("RTX 4070 Ti").gpu.usable_gib.source == "assumed"
    assert "11903 MiB" in parse_gpus("RTX 4070").gpu.usable_gib.note


@pytest.mark.parametrize("device", devices(), ids=lambda d: d.name)
def test_each_figure_names_what_it_was_read_in(device: Device) -> None:
    wanted = {"link", *(["capability"] if device.capability else []), *(["mig"] if device.mig else [])}
    wanted |= {name for name in ("bandwidth_gb_s", "tflops") if getattr(device, name)}
    assert device.read.keys() == wanted
    assert {*device.read.values(), *(m.read for m in device.memories)} <= sources().keys()
    for memory in device.memories:
        assert (memory.source == "assumed") == (memory.read == NOT_READ)
        assert memory.note


def test_a_bandwidth_goes_with_its_memory() -> None:
    assert parse_gpus("A100-80").gpu.bandwidth_gb_s == 2039
    assert parse_gpus("A100-40").gpu.bandwidth_gb_s == 1555


def test_what_was_not_read_is_no_source() -> None:
    assert "link" not in parse_gpus("A30").gpu.sources
    assert "TechPowerUp" in parse_gpus("A30").gpu.sources["bandwidth_gb_s"]


def test_a_wrong_amount_is_said() -> None:
    found = parse_gpus("8 x A10 32G")
    assert found.gpu.nominal_gb == 24
    assert "A10 has 24 GB, not 32 GB" in str(found.notes[0])


def test_a_name_of_two_sizes_says_which_is_taken() -> None:
    assert str(parse_gpus("A100").notes[0]) == "A100 comes with 40 / 80 GB; 80 GB are reckoned with"
    assert not parse_gpus("A100-40").notes
    assert not parse_gpus("RTX 4090").notes


def test_mixed_kinds_are_named() -> None:
    found = parse_gpus("RTX 5070 Ti 16GB + RTX 5090 D 32GB")
    assert found.count == 2
    assert found.mixed
    assert found.gpu.name == "RTX 5070 Ti"
    assert "1xRTX 5070 Ti + 1xRTX 5090 D" in str(found.notes[-1])


@pytest.mark.parametrize(
    ("spec", "near"), [("2xH10O", "H100"), ("RTX 4900", "RTX 4090"), ("L40X", "L40"), ("H2OO", "H200")]
)
def test_typos_name_the_nearest(spec: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gpus(spec)
    assert near in str(caught.value.hint)


@pytest.mark.parametrize("spec", ["", "  ", "0xA10", "99999xA10", "x", "(only a remark)", "3x"])
def test_no_gpu(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_gpus(spec)


def test_mig() -> None:
    found = parse_gpus("A100-80 MIG 3g.40gb").gpu
    assert found.mig == "3g.40gb"
    assert (found.usable_gib.value, found.usable_gib.source) == (39.25, "measured")
    assert parse_gpus("H200 MIG 1g.18gb").gpu.usable_gib.value == 16.0
    unseen = parse_gpus("B200 MIG 2g.45gb").gpu.usable_gib
    assert unseen.source == "assumed"
    assert 44 < unseen.value < 45
    with pytest.raises(UsageError, match=r"no MIG profile 5g\.50gb"):
        parse_gpus("H100 5g.50gb")


GENERATIONS = {
    "sm_75": (1, (7, 5)),
    "2xsm90a": (2, (9, 0)),
    "sm_120": (1, (12, 0)),
    "Turing (sm_75)": (1, (7, 5)),
    "2x Ada (sm_89)": (2, (8, 9)),
    "Ada Lovelace": (1, (8, 9)),
    "Ampere sm_86": (1, (8, 6)),
    "compute capability 7.5": (1, (7, 5)),
    "CC 8.6": (1, (8, 6)),
    "4 GPUs, compute capability < 8.9": (4, (8, 7)),
    "pre-Ampere GPUs": (1, (7, 5)),
    "older than Hopper": (1, (8, 9)),
    "8 GPUs": (8, None),
    "gfx942": (1, None),
}


@pytest.mark.parametrize("spec", GENERATIONS)
def test_a_generation_tells_the_capability_and_no_memory(spec: str) -> None:
    found = parse_gpus(spec)
    assert (found.count, found.gpu.cuda_capability) == GENERATIONS[spec]
    assert not found.memory_known
    assert len(found.members) == 1


def test_a_generation_alone_tells_no_count() -> None:
    assert not parse_gpus("Turing (sm_75)").counted
    assert parse_gpus("1x sm_75").counted
    assert parse_gpus("2 GPUs").counted
    assert parse_gpus("T4").counted


def test_a_generation_with_an_amount_has_memory() -> None:
    found = parse_gpus("4x sm_86 24GiB")
    assert (found.count, found.gpu.cuda_capability, found.gpu.usable_gib.value) == (4, (8, 6), 24.0)
    assert found.memory_known


def test_a_card_beside_its_generation_is_the_card() -> None:
    assert parse_gpus("Turing T4").gpu.name == parse_gpus("T4 (sm_75)").gpu.name == "T4"
    assert parse_gpus("gfx942").gpu.vendor == "AMD"


def test_a_count_may_stand_behind() -> None:
    assert parse_gpus("H20 96GB x4").count == 4


def test_capability() -> None:
    assert parse_gpus("H100").gpu.cuda_capability == (9, 0)
    assert parse_gpus("MI300X").gpu.cuda_capability is None
    assert cpu(64).gpu.cuda_capability is None


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(spec: str) -> None:
    try:
        found = parse_gpus(spec)
    except UsageError:
        return
    assert found.count >= 1
