"""The disk of a cache, a download or the log is full.

What it does: recognises the system's words in an error or a traceback; shared memory has a rule of its own.
Why it matters: Weights, the compile cache and logs all go to the disk of the home directory unless told otherwise.
How to fix: make room, or move HF_HOME and VLLM_CACHE_ROOT to a larger disk; a download that was cut goes on where it
    stopped.
When to ignore: never; what was being written is not whole.
Sources: POSIX ENOSPC and EDQUOT; huggingface_hub file_download.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"No space left on device|\[Errno 28\]|Disk quota exceeded|\[Errno 122\]|[Nn]ot enough (?:free )?disk "
        r"space|ENOSPC",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if (
        hit is None
        or context.first(r"/dev/shm|shared memory segment|</torch_\d+")
        or context.framed(r"multiprocessing/shared_memory\.py")
    ):
        return
    path = re.search(r"-> ?[\'\"](/[^\'\"]+)", hit.entry.text) or re.search(r"[\'\"](/[^\'\"]+)", hit.entry.text)
    yield context.finding(
        hit,
        msg(
            "no space is left on the disk{path}: make room, or move HF_HOME and VLLM_CACHE_ROOT to a larger one",
            zh="磁盘空间不足{path}：请清理，或把 HF_HOME 和 VLLM_CACHE_ROOT 移到更大的磁盘",
            path=msg(" of {path}", zh="（{path}）", path=path[1]) if path else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG035",
    name="disk-full",
    severity=Severity.ERROR,
    summary=msg("The disk of a cache, a download or the log is full.", zh="缓存、下载或日志所在磁盘已满。"),
    check=check,
    cause=Cause.DISK_FULL,
    sources=("https://huggingface.co/docs/huggingface_hub/guides/manage-cache",),
    bad=(
        Example(
            "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/tmp'\n",
            at="line 1: OSError: [Errno 28]",
        ),
    ),
    good=(
        Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),
        Example("Fatal Python error: Bus error\n"),
    ),
)
