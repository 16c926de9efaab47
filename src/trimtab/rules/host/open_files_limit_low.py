"""Few files may be open at once, and the limit cannot be raised.

What it does: reads RLIMIT_NOFILE; vLLM raises the soft limit to 65,535 where the hard one allows it.
Why it matters: each connection is a file: beyond the limit clients get refused connections and the log says "Too
    many open files".
How to fix: ulimit -Hn 65535 as root, LimitNOFILE=65535 in the unit, or --ulimit nofile=65535 for the container.
When to ignore: with few clients at once.
Sources: vllm/utils/system_utils.py (set_ulimit), vLLM 0.33; getrlimit(2).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENOUGH = 8192  # one for each of the connections that a busy server has, and those of its processes


def check(context: HostContext) -> Iterator[Finding]:
    hard = context.record.limits.open_files_hard
    if hard is not None and hard < ENOUGH:
        yield Finding(
            msg(
                "at most {hard} files may be open; vLLM wants 65535 and cannot raise it: LimitNOFILE or --ulimit "
                "nofile",
                zh="最多可打开 {hard} 个文件；vLLM 需要 65535 且无法自行提高：LimitNOFILE 或 --ulimit nofile",
                hard=hard,
            )
        )


RULE = Rule(
    code="HST401",
    name="open-files-limit-low",
    severity=Severity.WARNING,
    summary=msg(
        "Few files may be open at once, and the limit cannot be raised.",
        zh="可同时打开的文件太少，而且限制无法提高。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/utils/system_utils.py",),
    bad=(
        Example(
            '{"limits": {"open_files": 1024, "open_files_hard": 1024}}\n',
        ),
    ),
    good=(
        Example(
            '{"limits": {"open_files": 1024, "open_files_hard": 1048576}}\n',
        ),
        Example(
            '{"limits": {}}\n',
        ),
    ),
)
