"""A process of a vLLM engine is left over: what started it is gone.

What it does: looks for engine cores and workers (VLLM::EngineCore, VLLM::Worker) whose parent is no vLLM and that
    no server of Trimtab owns.
Why it matters: it holds its GPU memory for ever: the next start finds too little and dies.
How to fix: end it: kill PID, then kill -9 PID where it stays; nvidia-smi then shows the memory free.
When to ignore: when another supervisor adopts such processes on purpose.
Sources: vllm/utils/system_utils.py (set_process_title), vLLM 0.33; Trimtab's registry of servers.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    for holder in context.record.left_over:
        yield Finding(
            msg(
                "process {words} is left over from a vLLM that is gone; end it: kill {pid}",
                zh="进程 {words} 是已消失的 vLLM 的残留；请结束它：kill {pid}",
                words=holder.words,
                pid=holder.pid,
            )
        )


RULE = Rule(
    code="HST002",
    name="engine-process-left-over",
    severity=Severity.WARNING,
    summary=msg(
        "A process of a vLLM engine is left over: what started it is gone.",
        zh="有残留的 vLLM 引擎进程：启动它的进程已经不在了。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/utils/system_utils.py",),
    bad=(
        Example(
            '{"left_over": [{"pid": 4711, "command": "VLLM::EngineCore", "used_bytes": 21474836480, "left_over": '
            "true}]}\n",
        ),
    ),
    good=(
        Example(
            '{"left_over": []}\n',
        ),
    ),
)
