"""A card waits for a reset to retire bad memory, or could not retire it.

What it does: asks NVML for pending row remappings and pages, and whether remapping failed.
Why it matters: until the reset the bad rows are still in use; where remapping failed the card is to be replaced.
How to fix: reset the card (nvidia-smi -r) or restart the host; have it replaced where the repair failed.
When to ignore: when the reset is planned and the card runs nothing of worth until then.
Sources: NVIDIA GPU memory error management (row remapping); nvml.h (nvmlDeviceGetRemappedRows,
    nvmlDeviceGetRetiredPagesPendingStatus).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    for card in context.record.cards:
        if card.repair_failed:
            yield Finding(
                msg(
                    "card {index} ({name}) could not replace bad memory rows: it is to be replaced",
                    zh="第 {index} 号卡（{name}）无法替换坏的显存行：应更换此卡",
                    index=card.index,
                    name=card.name,
                ),
                severity=Severity.ERROR,
            )
        elif card.repair_pending:
            yield Finding(
                msg(
                    "card {index} ({name}) replaces bad memory at its next reset: nvidia-smi -r, or restart the host",
                    zh="第 {index} 号卡（{name}）要到下次重置才会替换坏显存：nvidia-smi -r，或重启主机",
                    index=card.index,
                    name=card.name,
                )
            )


RULE = Rule(
    code="HST009",
    name="gpu-awaiting-memory-repair",
    severity=Severity.WARNING,
    summary=msg(
        "A card waits for a reset to retire bad memory, or could not retire it.",
        zh="有卡在等待重置以停用坏显存，或停用失败。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"repair_pending": true}]}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"repair_failed": true}]}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"repair_pending": false, "repair_failed": false}]}\n',
        ),
    ),
)
