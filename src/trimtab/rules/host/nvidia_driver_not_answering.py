"""An NVIDIA card is on the bus, and no driver answers for it.

What it does: compares NVIDIA's display controllers on the PCI bus with what NVML says.
Why it matters: vLLM finds no platform and ends with "Failed to infer device type", or starts on the CPU.
How to fix: install the driver, load it (modprobe nvidia) or give the container the cards (--gpus all, runtime
    nvidia).
When to ignore: when the engine is the CPU build on purpose.
Sources: nvml.h (NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_NO_PERMISSION);
    vllm/platforms/__init__.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    if record.cards or not record.pci_gpus or record.gpu_trouble == "mismatch":
        return
    why = {
        "library": msg(
            "its library libnvidia-ml.so.1 is not there: install the driver, or start the container with --gpus all",
            zh="缺少驱动库 libnvidia-ml.so.1：请安装驱动，或用 --gpus all 启动容器",
        ),
        "loaded": msg("its kernel module is not loaded: modprobe nvidia", zh="内核模块未加载：modprobe nvidia"),
        "permission": msg("this user may not open /dev/nvidia*", zh="当前用户不能打开 /dev/nvidia*"),
    }.get(record.gpu_trouble) or msg("it says: {text}", zh="它说：{text}", text=record.gpu_trouble or "-")
    yield Finding(
        msg(
            "{n} NVIDIA cards are on the PCI bus and the driver shows none; {why}",
            zh="PCI 总线上有 {n} 块 NVIDIA 卡，驱动却一块也没有显示；{why}",
            n=record.pci_gpus,
            why=why,
        ),
        severity=None if record.on_gpu else Severity.INFO,
    )


RULE = Rule(
    code="HST004",
    name="nvidia-driver-not-answering",
    severity=Severity.ERROR,
    summary=msg(
        "An NVIDIA card is on the bus, and no driver answers for it.",
        zh="PCI 总线上有 NVIDIA 卡，但没有驱动应答。",
    ),
    check=check,
    sources=(
        "https://docs.nvidia.com/deploy/nvml-api/",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/platforms/__init__.py",
    ),
    bad=(
        Example(
            '{"pci_gpus": 1, "gpu_trouble": "library"}\n',
        ),
        Example(
            '{"pci_gpus": 2, "gpu_trouble": "loaded"}\n',
        ),
    ),
    good=(
        Example(
            '{"pci_gpus": 1, "cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, '
            '"free_bytes": 23300197580}]}\n',
        ),
        Example(
            '{"pci_gpus": 0, "gpu_trouble": "library"}\n',
        ),
    ),
)
