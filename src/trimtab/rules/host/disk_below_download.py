"""The model still to be downloaded is larger than the free disk.

What it does: compares the bytes that are missing in the hub's cache with what is free where the cache lies.
Why it matters: the download ends after minutes or hours with a full disk.
How to fix: free some space, or name a larger disk with HF_HOME.
When to ignore: when space is freed while it downloads.
Sources: The hub's own sizes of the repository's files; huggingface_hub/constants.py (HF_HOME, HF_HUB_CACHE).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    disk, need = record.disk("models"), record.wanted.fetch_bytes
    if disk is not None and need and disk.free_bytes is not None and need > disk.free_bytes:
        yield Finding(
            msg(
                "{model} has {need:.1f} GiB still to come; {path} has {free:.1f} GiB free",
                zh="{model} 还要下载 {need:.1f} GiB；{path} 只有 {free:.1f} GiB 空闲",
                model=record.wanted.model,
                need=need / GIB,
                path=disk.path,
                free=disk.free_bytes / GIB,
            )
        )


RULE = Rule(
    code="HST201",
    name="disk-below-download",
    severity=Severity.ERROR,
    summary=msg(
        "The model still to be downloaded is larger than the free disk.",
        zh="待下载的模型大于磁盘的空闲空间。",
    ),
    check=check,
    sources=("https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",),
    bad=(
        Example(
            '{"wanted": {"model": "org/model", "from_hub": true, "fetch_bytes": 150323855360}, "disks": [{"use": '
            '"models", "path": "/home/me/.cache/huggingface/hub", "free_bytes": 64424509440}]}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"model": "org/model", "from_hub": true, "fetch_bytes": 15032385536}, "disks": [{"use": '
            '"models", "path": "/home/me/.cache/huggingface/hub", "free_bytes": 64424509440}]}\n',
        ),
    ),
)
