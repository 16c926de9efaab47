"""The launch pins more host memory than is available.

What it does: adds up swap space, offloaded weights and offloaded cache over the ranks and compares them with the
    memory available here.
Why it matters: pinned memory cannot be swapped out: the kernel kills the engine (exit code 137), or CUDA refuses
    the allocation.
How to fix: lower --swap-space, --cpu-offload-gb or --kv-offloading-size, or give the container more memory.
When to ignore: when other programs end before the engine starts.
Sources: vllm/config/cache.py and vllm/config/offload.py, vLLM 0.33; mlock(2).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    need, have = record.wanted.pinned_bytes, record.memory.available_bytes
    if need and record.memory.total_bytes and need > have:
        yield Finding(
            msg(
                "the launch pins {need:.1f} GiB of host memory; {have:.1f} of {total:.1f} GiB are available",
                zh="启动要锁定 {need:.1f} GiB 主机内存；{total:.1f} GiB 中可用 {have:.1f} GiB",
                need=need / GIB,
                have=have / GIB,
                total=(record.memory.limit_bytes or record.memory.total_bytes) / GIB,
            )
        )


RULE = Rule(
    code="HST101",
    name="host-memory-below-pinned",
    severity=Severity.ERROR,
    summary=msg(
        "The launch pins more host memory than is available.",
        zh="启动要锁定的主机内存多于可用内存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/cache.py",),
    bad=(
        Example(
            '{"memory": {"total_bytes": 34359738368, "available_bytes": 12884901888}, "wanted": {"pinned_bytes": '
            "34359738368}}\n",
        ),
    ),
    good=(
        Example(
            '{"memory": {"total_bytes": 68719476736, "available_bytes": 53687091200}, "wanted": {"pinned_bytes": '
            "34359738368}}\n",
        ),
    ),
)
