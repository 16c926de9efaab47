"""A card's hardware holds its clock down: heat or power supply.

What it does: asks NVML why the clocks are held back, and takes the hardware's own reasons alone.
Why it matters: a slowed card decodes at a fraction of its speed, and the whole tensor-parallel group waits for it.
How to fix: look at fans, air flow and power cables; nvidia-smi -q -d PERFORMANCE names the reason.
When to ignore: when it passes by itself after a heavy job that just ended.
Sources: nvml.h (nvmlClocksEventReasons: HwSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    for card in context.record.cards:
        if card.slowdowns:
            yield Finding(
                msg(
                    "card {index} ({name}) is slowed by its hardware: {why}",
                    zh="第 {index} 号卡（{name}）被硬件降速：{why}",
                    index=card.index,
                    name=card.name,
                    why=", ".join(card.slowdowns),
                )
            )


RULE = Rule(
    code="HST010",
    name="gpu-slowed-by-hardware",
    severity=Severity.WARNING,
    summary=msg(
        "A card's hardware holds its clock down: heat or power supply.",
        zh="硬件因过热或供电压低了卡的频率。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/nvml-api/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"slowdowns": ["thermal"]}]}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"slowdowns": []}]}\n',
        ),
    ),
)
