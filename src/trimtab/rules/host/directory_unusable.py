"""A directory that a server is kept or started with cannot be written to, or its disk is nearly full.

What it does: tries whether Trimtab's state directory (records, journals, logs) and the one for temporary files (TMPDIR,
    else /tmp) can be written to, and how much is free there.
Why it matters: without a record nobody can find or end the server, and its log and journal stop with a full disk;
    vLLM's processes meet over sockets in the temporary directory, and Triton and torch compile there.
How to fix: mend the owner or mode, free some space, or set XDG_STATE_HOME or TMPDIR to a directory that this user may
    write to.
When to ignore: never: every start writes to both.
Sources: docs/up.md (where Trimtab keeps its files); XDG Base Directory Specification; vllm/envs.py
    (VLLM_RPC_BASE_PATH defaults to tempfile.gettempdir()), vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENOUGH_BYTES = 256 << 20
USES: dict[str, tuple[str, Message]] = {
    "state": ("XDG_STATE_HOME", msg("the engine's log and journal", zh="引擎日志与流水")),
    "temporary": ("TMPDIR", msg("compiling", zh="编译")),
}
"""Use of a disk -> the variable that names another directory, and what writes there."""


def check(context: HostContext) -> Iterator[Finding]:
    for use, (variable, writer) in USES.items():
        disk = context.record.disk(use)
        if disk is not None and not disk.writable:
            yield Finding(
                msg(
                    "{path} cannot be written to: {reason}; set {variable} to a directory of yours",
                    zh="{path} 不可写：{reason}；把 {variable} 设为您自己的目录",
                    path=disk.path,
                    reason=disk.reason or "-",
                    variable=variable,
                )
            )
        elif disk is not None and disk.free_bytes is not None and disk.free_bytes < ENOUGH_BYTES:
            yield Finding(
                msg(
                    "{path} has {free:.0f} MiB free; {writer} should find 256 at least",
                    zh="{path} 只有 {free:.0f} MiB 空闲；{writer}至少需要 256 MiB",
                    path=disk.path,
                    free=disk.free_bytes / 2**20,
                    writer=writer,
                ),
                severity=Severity.WARNING,
            )


RULE = Rule(
    code="HST203",
    name="directory-unusable",
    severity=Severity.ERROR,
    summary=msg(
        "A directory that a server is kept or started with cannot be written to, or its disk is nearly full.",
        zh="保存服务状态或临时文件的目录不可写，或所在磁盘几乎已满。",
    ),
    check=check,
    sources=(
        "https://specifications.freedesktop.org/basedir-spec/latest/",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/envs.py",
    ),
    bad=(
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "writable": false, "reason": '
            '"Read-only file system"}]}\n',
        ),
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "free_bytes": 6291456}]}\n',
        ),
        Example(
            '{"disks": [{"use": "temporary", "path": "/tmp", "writable": false, "reason": "Read-only file system"}]}\n',
        ),
        Example(
            '{"disks": [{"use": "temporary", "path": "/tmp", "free_bytes": 1048576}]}\n',
        ),
    ),
    good=(
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "free_bytes": 9663676416}, '
            '{"use": "temporary", "path": "/tmp", "free_bytes": 9663676416}]}\n',
        ),
    ),
)
