"""Trimtab's state directory cannot be written to, or its disk is nearly full.

What it does: tries whether the directory of records, journals and logs can be written to, and how much is free
    there.
Why it matters: without a record nobody can find or end the server; with a full disk its log and journal stop.
How to fix: mend the owner or mode, free some space, or set XDG_STATE_HOME to another disk.
When to ignore: never: nothing can be supervised without it.
Sources: docs/up.md (where Trimtab keeps its files); XDG Base Directory Specification.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENOUGH_BYTES = 256 << 20


def check(context: HostContext) -> Iterator[Finding]:
    disk = context.record.disk("state")
    if disk is None:
        return
    if not disk.writable:
        yield Finding(
            msg(
                "{path} cannot be written to: {reason}; set XDG_STATE_HOME to a directory of yours",
                zh="{path} 不可写：{reason}；把 XDG_STATE_HOME 设为您自己的目录",
                path=disk.path,
                reason=disk.reason or "-",
            )
        )
    elif disk.free_bytes is not None and disk.free_bytes < ENOUGH_BYTES:
        yield Finding(
            msg(
                "{path} has {free:.0f} MiB free; the engine's log and journal want 256",
                zh="{path} 只有 {free:.0f} MiB 空闲；引擎日志与流水需要 256 MiB",
                path=disk.path,
                free=disk.free_bytes / 2**20,
            ),
            severity=Severity.WARNING,
        )


RULE = Rule(
    code="HST203",
    name="state-directory-unusable",
    severity=Severity.ERROR,
    summary=msg(
        "Trimtab's state directory cannot be written to, or its disk is nearly full.",
        zh="Trimtab 的状态目录不可写，或所在磁盘几乎已满。",
    ),
    check=check,
    sources=("https://specifications.freedesktop.org/basedir-spec/latest/",),
    bad=(
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "writable": false, "reason": '
            '"Read-only file system"}]}\n',
        ),
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "free_bytes": 6291456}]}\n',
        ),
    ),
    good=(
        Example(
            '{"disks": [{"use": "state", "path": "/home/me/.local/state/trimtab", "free_bytes": 9663676416}]}\n',
        ),
    ),
)
