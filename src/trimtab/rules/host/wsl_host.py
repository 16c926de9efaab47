"""This is Windows' Linux (WSL): Windows shares the card, and pinned memory may be off.

What it does: reads the kernel's name.
Why it matters: vLLM before 0.24 switches pinned memory off (later ones with kernels before 4.19.121), transfers are
    slower, and the display takes part of the card's memory.
How to fix: nothing for trials; else give WSL enough memory in .wslconfig, and serve from Linux where speed matters.
When to ignore: for trials, which it does not hinder.
Sources: vllm/platforms/cuda.py and interface.py (is_pin_memory_available), vLLM 0.23 and 0.33; NVIDIA CUDA on WSL
    user guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    if context.record.wsl:
        yield Finding(
            msg(
                "WSL: vLLM before 0.24 uses no pinned memory here, and Windows holds part of the card's memory",
                zh="WSL：0.24 之前的 vLLM 在此不使用锁页内存，且 Windows 占用一部分显存",
            )
        )


RULE = Rule(
    code="HST501",
    name="wsl-host",
    severity=Severity.INFO,
    summary=msg(
        "This is Windows' Linux (WSL): Windows shares the card, and pinned memory may be off.",
        zh="这是 Windows 里的 Linux（WSL）：显卡与 Windows 共用，锁页内存可能关闭。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/cuda/wsl-user-guide/",),
    bad=(
        Example(
            '{"wsl": true}\n',
        ),
    ),
    good=(
        Example(
            '{"wsl": false}\n',
        ),
    ),
)
