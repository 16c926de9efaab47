"""A card counts uncorrected memory errors since its driver was loaded.

What it does: asks NVML for the volatile count of uncorrected ECC errors.
Why it matters: a launch that touches the bad memory dies with an Xid 48, 63 or 94, or an illegal memory access.
How to fix: reset the card (nvidia-smi -r) or restart the host; where the errors come back, have the card replaced.
When to ignore: when the count is from before a reset that mended it.
Sources: NVIDIA GPU memory error management (deploy/a100-gpu-mem-error-mgmt); nvml.h (nvmlDeviceGetTotalEccErrors).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    for card in context.record.cards:
        if card.uncorrected_errors:
            yield Finding(
                msg(
                    "card {index} ({name}) counts {n} uncorrected memory errors since its driver was loaded",
                    zh="第 {index} 号卡（{name}）自驱动加载以来有 {n} 个无法纠正的显存错误",
                    index=card.index,
                    name=card.name,
                    n=card.uncorrected_errors,
                )
            )


RULE = Rule(
    code="HST008",
    name="gpu-memory-errors-uncorrected",
    severity=Severity.WARNING,
    summary=msg(
        "A card counts uncorrected memory errors since its driver was loaded.",
        zh="有卡自驱动加载以来出现过无法纠正的显存错误。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uncorrected_errors": 3}]}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uncorrected_errors": 0}]}\n',
        ),
    ),
)
