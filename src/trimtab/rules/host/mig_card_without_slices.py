"""A card is in MIG mode and has no MIG device to run on.

What it does: asks NVML for the MIG mode of each card and counts its MIG devices.
Why it matters: in MIG mode CUDA runs on slices alone: without one the card counts for nothing, and vLLM sees no
    GPU.
How to fix: make a slice (nvidia-smi mig -cgi PROFILE -C) or switch MIG off (nvidia-smi -i N -mig 0).
When to ignore: when the launch runs on other cards.
Sources: NVIDIA MIG user guide (device enumeration); nvml.h (nvmlDeviceGetMigMode).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    whole = [card for card in record.cards if not card.mig]
    for card in record.cards:
        if card.mig and card.slices == 0:
            enough = len(whole) >= max(1, record.wanted.cards)
            yield Finding(
                msg(
                    "card {index} ({name}) is in MIG mode and has no MIG device: nvidia-smi mig -i {index} -cgi "
                    "PROFILE -C",
                    zh="第 {index} 号卡（{name}）处于 MIG 模式，但没有 MIG 设备：nvidia-smi mig -i {index} -cgi "
                    "PROFILE -C",
                    index=card.index,
                    name=card.name,
                ),
                severity=Severity.WARNING if enough or not record.on_gpu else None,
            )


RULE = Rule(
    code="HST006",
    name="mig-card-without-slices",
    severity=Severity.ERROR,
    summary=msg(
        "A card is in MIG mode and has no MIG device to run on.",
        zh="有卡处于 MIG 模式，却没有可用的 MIG 设备。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA H100 80GB HBM3", "total_bytes": 23686744637, "free_bytes": '
            '23300197580, "mig": true, "slices": 0}], "wanted": {"cards": 1}}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"mig": true, "slices": 2}], "wanted": {"cards": 1}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580}]}\n',
        ),
    ),
)
