"""Persistence mode is off: the driver lets go of a card that nobody uses.

What it does: asks NVML for the persistence mode of each card.
Why it matters: each start then waits until the driver has set the card up again, and settings such as power limits
    are lost between starts.
How to fix: start nvidia-persistenced, or run nvidia-smi -pm 1.
When to ignore: on a desktop, where a display holds the card anyway.
Sources: NVIDIA driver persistence guide (deploy/driver-persistence).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    off = [str(card.index) for card in context.record.cards if card.persistence is False]
    if off and not context.record.wsl:
        yield Finding(
            msg(
                "persistence mode is off on card {cards}: each start waits for the driver; nvidia-smi -pm 1",
                zh="第 {cards} 号卡的持久模式关闭：每次启动都要等驱动初始化；nvidia-smi -pm 1",
                cards=", ".join(off),
            )
        )


RULE = Rule(
    code="HST011",
    name="persistence-mode-off",
    severity=Severity.INFO,
    summary=msg(
        "Persistence mode is off: the driver lets go of a card that nobody uses.",
        zh="持久模式关闭：没人使用时驱动会释放卡。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deploy/driver-persistence/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"persistence": false}]}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"persistence": true}]}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580}]}\n',
        ),
    ),
)
