"""Only the engine's death is in the log; its first error is missing.

What it does: speaks where an error says that the engine is dead or did not start, and no other rule found a cause.
Why it matters: EngineDeadError and "Engine core initialization failed" are the last link: every later request gets
    them. The cause stands above, often in another process's lines.
How to fix: look further up, or get the log from its beginning (all processes, not only the API server). Do not search
    for this line's words: it says nothing.
When to ignore: never; the server cannot work like this.
Sources: vllm/v1/engine/exceptions.py and core_client.py, vLLM 0.26; vllm/engine/async_llm_engine.py, vLLM 0.6.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.engine.logs.summary import is_consequence
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import VAGUE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DEAD = (
    r"EngineDeadError|Background loop has errored already|Engine core initialization failed|engine dead\)"
    r"|Engine process failed to start|Engine (?:core )?process .*died|Worker proc .*died|"
    r"Worker \w+ pid \d+ died, exit code|died with exit code [1-9]"
    r"|Engine (?:loop has|process \(pid \d+\)) died|Engine is already dead, terminating"
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(DEAD)
    if hit is None or context.after_a_stop(hit.entry.line):
        return
    errors = [e for e in context.errors if e.kind is EntryKind.EXCEPTION and not is_consequence(e.text)]
    if errors and not all(re.search(DEAD, e.text) for e in errors):
        return
    yield context.finding(
        hit,
        msg(
            "the engine is dead, and what killed it is not in this log: look above its first line, in all "
            "processes' output",
            zh="引擎已退出，但日志中没有原因：请查看更早的内容和所有进程的输出",
        ),
        VAGUE,
    )


RULE = Rule(
    code="LOG164",
    name="engine-death-without-its-error",
    severity=Severity.ERROR,
    summary=msg(
        "Only the engine's death is in the log; its first error is missing.",
        zh="日志里只有引擎死亡的信息，缺少最初的错误。",
    ),
    check=check,
    cause=Cause.ENGINE_DEAD_UNEXPLAINED,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/engine/exceptions.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/engine/async_llm_engine.py",
    ),
    bad=(
        Example(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace "
            "(above) for the root cause.\n",
            at="line 1: vllm.v1",
        ),
    ),
    good=(
        Example("ValueError: the cause\nRuntimeError: Engine core initialization failed. See root cause above.\n"),
        Example(
            "INFO:     Application startup complete.\n"
            "(APIServer pid=1) WARNING 11-30 03:43:16 [utils.py:648] [shutdown] Process manager: force killing "
            "remaining processes count=1\n"
            "(APIServer pid=1) ERROR 11-30 03:43:16 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: "
            "EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
        ),
    ),
)
