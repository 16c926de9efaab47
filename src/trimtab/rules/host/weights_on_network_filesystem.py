"""The weights lie on a network file system.

What it does: looks up the file system of the model's directory among the kernel's mounts.
Why it matters: safetensors are mapped into memory page by page: over the network the load takes many times longer,
    and start-up bounds run out.
How to fix: copy the model to a local disk, or load it with --safetensors-load-strategy eager (or --load-format
    fastsafetensors).
When to ignore: when the load time does not matter.
Sources: vllm/config/load.py (safetensors_load_strategy), vLLM 0.33; proc(5), mounts.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.s3fs", "9p", "afs")


def check(context: HostContext) -> Iterator[Finding]:
    disk = context.record.disk("weights")
    if disk is not None and disk.filesystem in NETWORK:
        yield Finding(
            msg(
                "{path} lies on a network file system ({kind}): loading maps it page by page and may take many minutes",
                zh="{path} 位于网络文件系统（{kind}）：加载时逐页映射，可能要很多分钟",
                path=disk.path,
                kind=disk.filesystem,
            )
        )


RULE = Rule(
    code="HST208",
    name="weights-on-network-filesystem",
    severity=Severity.INFO,
    summary=msg(
        "The weights lie on a network file system.",
        zh="权重位于网络文件系统上。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/load.py",),
    bad=(
        Example(
            '{"disks": [{"use": "weights", "path": "/mnt/models/m", "filesystem": "nfs4"}]}\n',
        ),
    ),
    good=(
        Example(
            '{"disks": [{"use": "weights", "path": "/models/m", "filesystem": "ext4"}]}\n',
        ),
    ),
)
