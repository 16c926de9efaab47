"""The hub's cache cannot be written to, and the model is not whole in it.

What it does: tries whether this user may write where HF_HOME and HF_HUB_CACHE put the cache.
Why it matters: the download fails at its first file with a permission error; a container that runs as another user
    is the usual reason.
How to fix: mend the owner or mode, or name another place with HF_HOME.
When to ignore: when the model is given as a directory.
Sources: huggingface_hub/constants.py (HF_HOME, HF_HUB_CACHE).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    disk = record.disk("models")
    if disk is None or disk.writable or record.wanted.cached:
        return
    yield Finding(
        msg(
            "the model cache {path} cannot be written to: {reason}; name another place with HF_HOME",
            zh="模型缓存 {path} 不可写：{reason}；用 HF_HOME 指定别处",
            path=disk.path,
            reason=disk.reason or "-",
        ),
        severity=None if record.wanted.from_hub else Severity.WARNING,
    )


RULE = Rule(
    code="HST202",
    name="model-cache-not-writable",
    severity=Severity.ERROR,
    summary=msg(
        "The hub's cache cannot be written to, and the model is not whole in it.",
        zh="模型缓存不可写，而模型在其中并不完整。",
    ),
    check=check,
    sources=("https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",),
    bad=(
        Example(
            '{"wanted": {"model": "org/model", "from_hub": true}, "disks": [{"use": "models", "path": '
            '"/root/.cache/huggingface/hub", "writable": false, "reason": "Permission denied"}]}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"from_hub": true, "cached": true}, "disks": [{"use": "models", "path": "/models", '
            '"writable": false, "reason": "Read-only file system"}]}\n',
        ),
        Example(
            '{"disks": [{"use": "models", "path": "/home/me/.cache"}]}\n',
        ),
    ),
)
