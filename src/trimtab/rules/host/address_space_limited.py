"""The size of this process's address space is limited (ulimit -v).

What it does: reads RLIMIT_AS.
Why it matters: CUDA and torch reserve address space far beyond what they use; under a limit they fail with out of
    memory although memory is free.
How to fix: ulimit -v unlimited in the shell, or LimitAS=infinity in the unit, before the start.
When to ignore: never with CUDA.
Sources: setrlimit(2) (RLIMIT_AS); CUDA C++ Programming Guide (unified virtual addressing).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    limit = context.record.limits.address_bytes
    if limit is not None:
        yield Finding(
            msg(
                "this process's address space is limited to {gib:.1f} GiB; CUDA and torch reserve more: ulimit -v "
                "unlimited",
                zh="本进程的地址空间限制为 {gib:.1f} GiB；CUDA 与 torch 会预留更多：ulimit -v unlimited",
                gib=limit / GIB,
            ),
            severity=None if context.record.on_gpu else Severity.WARNING,
        )


RULE = Rule(
    code="HST106",
    name="address-space-limited",
    severity=Severity.ERROR,
    summary=msg(
        "The size of this process's address space is limited (ulimit -v).",
        zh="本进程的地址空间大小受限（ulimit -v）。",
    ),
    check=check,
    sources=("https://man7.org/linux/man-pages/man2/setrlimit.2.html",),
    bad=(
        Example(
            '{"limits": {"address_bytes": 17179869184}}\n',
        ),
    ),
    good=(
        Example(
            '{"limits": {}}\n',
        ),
    ),
)
