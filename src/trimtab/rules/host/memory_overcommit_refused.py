"""The kernel is set to refuse memory that is not backed (vm.overcommit_memory=2).

What it does: reads /proc/sys/vm/overcommit_memory.
Why it matters: CUDA reserves address space of many times the card's memory; strict accounting refuses it, and CUDA
    initialisation fails with out of memory.
How to fix: sysctl vm.overcommit_memory=0 (the kernel's default).
When to ignore: where vm.overcommit_ratio was raised far enough for it.
Sources: Linux kernel documentation, vm/overcommit-accounting.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    if context.record.memory.overcommit == 2:
        yield Finding(
            msg(
                "vm.overcommit_memory is 2: the address space that CUDA and torch reserve may be refused; sysctl "
                "vm.overcommit_memory=0",
                zh="vm.overcommit_memory 是 2：CUDA 与 torch 预留的地址空间可能被拒绝；sysctl vm.overcommit_memory=0",
            )
        )


RULE = Rule(
    code="HST105",
    name="memory-overcommit-refused",
    severity=Severity.WARNING,
    summary=msg(
        "The kernel is set to refuse memory that is not backed (vm.overcommit_memory=2).",
        zh="内核设置为拒绝没有实际内存支撑的分配（vm.overcommit_memory=2）。",
    ),
    check=check,
    sources=("https://docs.kernel.org/mm/overcommit-accounting.html",),
    bad=(
        Example(
            '{"memory": {"total_bytes": 68719476736, "available_bytes": 64424509440, "overcommit": 2}}\n',
        ),
    ),
    good=(
        Example(
            '{"memory": {"total_bytes": 68719476736, "available_bytes": 64424509440, "overcommit": 0}}\n',
        ),
        Example(
            '{"memory": {"overcommit": 1}}\n',
        ),
    ),
)
