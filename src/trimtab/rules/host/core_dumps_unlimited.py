"""A crash would write the engine's whole memory to disk (ulimit -c unlimited).

What it does: reads RLIMIT_CORE.
Why it matters: a crashed engine of many GiB fills the disk and holds its GPU memory while the dump is written.
How to fix: ulimit -c 0, LimitCORE=0 in the unit, or --ulimit core=0 for the container.
When to ignore: when the dump is wanted and the disk holds it.
Sources: core(5); getrlimit(2).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    if context.record.limits.core_bytes is None and context.record.on_gpu:
        yield Finding(
            msg(
                "core dumps are unlimited: a crash writes the engine's whole memory to disk; ulimit -c 0",
                zh="core 转储不受限：崩溃会把引擎的全部内存写入磁盘；ulimit -c 0",
            )
        )


RULE = Rule(
    code="HST403",
    name="core-dumps-unlimited",
    severity=Severity.INFO,
    summary=msg(
        "A crash would write the engine's whole memory to disk (ulimit -c unlimited).",
        zh="崩溃时会把引擎的全部内存写到磁盘（ulimit -c unlimited）。",
    ),
    check=check,
    sources=("https://man7.org/linux/man-pages/man5/core.5.html",),
    bad=(
        Example(
            '{"limits": {"core_bytes": null}}\n',
        ),
    ),
    good=(
        Example(
            '{"limits": {"core_bytes": 0}}\n',
        ),
        Example(
            "{}\n",
        ),
    ),
)
