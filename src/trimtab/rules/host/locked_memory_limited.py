"""Locked memory is limited on a host with InfiniBand.

What it does: reads RLIMIT_MEMLOCK where /sys/class/infiniband has a device and several ranks run.
Why it matters: NCCL registers its buffers with the adapter: under the limit it fails with "Cannot allocate memory"
    or an unhandled system error.
How to fix: ulimit -l unlimited, LimitMEMLOCK=infinity in the unit, or --ulimit memlock=-1 for the container.
When to ignore: on one host without NCCL over the network (NCCL_IB_DISABLE=1).
Sources: NCCL user guide, troubleshooting (memory locking); getrlimit(2).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    limit = record.limits.locked_bytes
    if record.infiniband and record.wanted.ranks > 1 and limit is not None and limit < GIB:
        yield Finding(
            msg(
                "{mib:.1f} MiB may be locked; NCCL over InfiniBand registers far more: ulimit -l unlimited",
                zh="最多可锁定 {mib:.1f} MiB；NCCL 经 InfiniBand 要注册的远多于此：ulimit -l unlimited",
                mib=limit / 2**20,
            )
        )


RULE = Rule(
    code="HST402",
    name="locked-memory-limited",
    severity=Severity.WARNING,
    summary=msg(
        "Locked memory is limited on a host with InfiniBand.",
        zh="有 InfiniBand 的主机上锁定内存受限。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    bad=(
        Example(
            '{"infiniband": true, "wanted": {"ranks": 8, "cards": 8}, "limits": {"locked_bytes": 8388608}}\n',
        ),
    ),
    good=(
        Example(
            '{"infiniband": false, "wanted": {"ranks": 8}, "limits": {"locked_bytes": 8388608}}\n',
        ),
        Example(
            '{"infiniband": true, "wanted": {"ranks": 8}, "limits": {}}\n',
        ),
    ),
)
