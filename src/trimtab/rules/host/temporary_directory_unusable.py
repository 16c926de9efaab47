"""The directory for temporary files cannot be written to, or is full.

What it does: tries to write where TMPDIR (else /tmp) points, and asks how much is free.
Why it matters: vLLM's processes meet over sockets in it, and Triton and torch compile there: the start fails with a
    file error.
How to fix: free some space, or set TMPDIR to a directory that this user may write to.
When to ignore: never: every start writes there.
Sources: vllm/envs.py (VLLM_RPC_BASE_PATH defaults to tempfile.gettempdir()), vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENOUGH_BYTES = 256 << 20


def check(context: HostContext) -> Iterator[Finding]:
    disk = context.record.disk("temporary")
    if disk is None:
        return
    if not disk.writable:
        yield Finding(
            msg(
                "{path} cannot be written to: {reason}; set TMPDIR to a directory of yours",
                zh="{path} 不可写：{reason}；把 TMPDIR 设为您自己的目录",
                path=disk.path,
                reason=disk.reason or "-",
            )
        )
    elif disk.free_bytes is not None and disk.free_bytes < ENOUGH_BYTES:
        yield Finding(
            msg(
                "{path} has {free:.0f} MiB free; compiling wants 256 at least",
                zh="{path} 只有 {free:.0f} MiB 空闲；编译至少需要 256 MiB",
                path=disk.path,
                free=disk.free_bytes / 2**20,
            ),
            severity=Severity.WARNING,
        )


RULE = Rule(
    code="HST204",
    name="temporary-directory-unusable",
    severity=Severity.ERROR,
    summary=msg(
        "The directory for temporary files cannot be written to, or is full.",
        zh="临时目录不可写或已满。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/envs.py",),
    bad=(
        Example(
            '{"disks": [{"use": "temporary", "path": "/tmp", "writable": false, "reason": "Read-only file system"}]}\n',
        ),
        Example(
            '{"disks": [{"use": "temporary", "path": "/tmp", "free_bytes": 1048576}]}\n',
        ),
    ),
    good=(
        Example(
            '{"disks": [{"use": "temporary", "path": "/tmp", "free_bytes": 9663676416}]}\n',
        ),
    ),
)
