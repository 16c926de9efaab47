"""Several ranks share a /dev/shm that is too small for them.

What it does: compares the free part of /dev/shm with 512 MiB where more than one rank runs.
Why it matters: NCCL and vLLM's message queue live there; full, it ends in a bus error or "unhandled system error"
    of NCCL.
How to fix: docker run --ipc=host or --shm-size 16g; Kubernetes an emptyDir of medium Memory on /dev/shm; else mount
    -o remount,size=16G /dev/shm.
When to ignore: never below 512 MiB with more than one rank.
Sources: docs/deployment/docker.md, vLLM 0.33; NCCL troubleshooting (shared memory); shm_open(3).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENOUGH_BYTES = 512 << 20


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    free = record.memory.shm_free_bytes if record.memory.shm_free_bytes is not None else record.memory.shm_bytes
    if record.wanted.ranks > 1 and free is not None and free < ENOUGH_BYTES:
        yield Finding(
            msg(
                "/dev/shm has {free:.0f} MiB free of {total:.0f}; {ranks} ranks share it and want 512 at least",
                zh="/dev/shm 共 {total:.0f} MiB，空闲 {free:.0f} MiB；{ranks} 个 rank 共用它，至少需要 512 MiB",
                free=free / 2**20,
                total=(record.memory.shm_bytes or 0) / 2**20,
                ranks=record.wanted.ranks,
            ),
            evidence=("docker run --ipc=host, or --shm-size 16g",) if record.container else (),
        )


RULE = Rule(
    code="HST103",
    name="shared-memory-too-small",
    severity=Severity.WARNING,
    summary=msg(
        "Several ranks share a /dev/shm that is too small for them.",
        zh="多个 rank 共用的 /dev/shm 太小。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/deployment/docker.md",),
    bad=(
        Example(
            '{"memory": {"shm_bytes": 67108864, "shm_free_bytes": 67108864}, "wanted": {"ranks": 2, "cards": 2}, '
            '"container": true}\n',
        ),
    ),
    good=(
        Example(
            '{"memory": {"shm_bytes": 67108864}, "wanted": {"ranks": 1}}\n',
        ),
        Example(
            '{"memory": {"shm_bytes": 8589934592, "shm_free_bytes": 8589934592}, "wanted": {"ranks": 4}}\n',
        ),
    ),
)
