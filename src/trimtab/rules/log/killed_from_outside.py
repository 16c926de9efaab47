"""The process was killed from outside (exit 137, -9), and the log does not say why.

What it does: reads the exit status where it is known, and the words of shells, Docker and vLLM about signal 9.
Why it matters: The kernel's out-of-memory killer and a container's memory limit do it most often; a liveness probe or
    an operator as well.
How to fix: dmesg | grep -i oom (Kubernetes: kubectl describe pod, reason OOMKilled) tells whether it was memory; then
    give more, or fewer ranks. A flag of the card's memory changes nothing.
When to ignore: where you killed it yourself.
Sources: Linux mm/oom_kill.c; the shell's 128 + 9.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import Entry
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, POSSIBLE, Hit, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"^Killed\b|(?:s/it|it/s)\] *Killed$|: line \d+: +\d+ Killed\b",
        r"exit(?:ed)?(?: with)?(?: code| status)?:? ?\(?(?:137|-9)\b|[Ee]xit [Cc]ode:? *137|signal "
        r"9\b|SIGKILL(?! by OOM killer due)|status=9/KILL|exit code: -9|Failed (?:core|frontend) proc\(s\): .*: -9\b",
    )
    status = context.facts.exit_status
    if hit is not None and context.first(OWN_END, kinds=EVERYWHERE):
        return
    if hit is None and status not in (137, -9):
        yield from _without_a_word(context)
        return
    message = msg(
        "the process was killed from outside (signal 9): see whether memory ran out on the host (dmesg, or "
        "OOMKilled in "
        "kubectl describe pod)",
        zh="进程被外部杀死（信号 9）：请查看主机内存是否耗尽（dmesg，或 kubectl describe pod 中的 OOMKilled）",
    )
    yield context.finding([hit] if hit else [], message, LIKELY)


def _without_a_word(context: LogContext) -> Iterator[Finding]:
    """An engine's process that is gone and told no error first, in a log that holds its start."""
    gone = _gone_while_serving(context) if context.facts.served else _gone_while_starting(context)
    if gone is None or context.first(CRASHED):
        return
    message = msg(
        "a process of the engine ended without an error of its own, as one does that is killed (signal 9): see "
        "whether memory ran out on the host (dmesg, or OOMKilled in kubectl describe pod)",
        zh="引擎的一个进程没有报错就结束了，像是被杀死（信号 9）：请查看主机内存是否耗尽（dmesg，或 "
        "kubectl describe pod 中的 OOMKilled）",
    )
    yield context.finding(gone, message, POSSIBLE)


def _gone_while_serving(context: LogContext) -> Hit | None:
    gone = context.first(GONE, kinds=EVERYWHERE)
    if gone is None or not context.facts.starts or gone.entry.line < context.facts.begin_line:
        return None
    return None if _told(context, gone.entry.line) else gone


def _gone_while_starting(context: LogContext) -> Hit | None:
    """The front end misses the engine, its worker misses it too, and neither it nor they told an error before."""
    missed, orphaned = context.first(MISSED), context.first(ORPHANED, kinds=EVERYWHERE)
    if missed is None or orphaned is None or not context.facts.starts:
        return None
    told = _told(context, max(missed.entry.line, orphaned.entry.line))
    return missed if all(entry.line == missed.entry.line for entry in told) else None


def _told(context: LogContext, line: int) -> list[Entry]:
    """The newest start's errors before a line."""
    return [e for e in context.errors if context.facts.begin_line <= e.line < line]


MISSED = r"Engine core initialization failed\b"
ORPHANED = r"Parent process exited, terminating worker"
"""vLLM 0.11 to 0.33: a worker whose EngineCore is gone."""
GONE = r"(?i:engine core (?:proc \S+ )?(?:died|exited) unexpectedly|Worker proc \S+ died unexpectedly)"
"""vLLM 0.8 to 0.33, where it tells no exit code."""
CRASHED = r"Segfault encountered|Segmentation fault|Fatal Python error"

OWN_END = r"(?:Got|got) fatal signal from worker processes, shutting down"
"""vLLM 0.7 to 0.8 ends its own group by SIGKILL after a failure that stands above."""


RULE = Rule(
    code="LOG160",
    name="killed-from-outside",
    severity=Severity.ERROR,
    summary=msg(
        "The process was killed from outside (exit 137, -9), and the log does not say why.",
        zh="进程被外部杀死（退出码 137 或 -9），日志未说明原因。",
    ),
    check=check,
    cause=Cause.KILLED_BY_KERNEL,
    sources=("https://docs.kernel.org/admin-guide/mm/concepts.html",),
    bad=(
        Example(
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [multiproc_executor.py:9] Worker proc VllmWorker-0 "
            "died unexpectedly (exit code: -9), shutting down executor.\n",
            at="line 1: Worker proc",
        ),
        Example(
            "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore': -9}\n",
            at="line 1: RuntimeError",
        ),
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n", exit_status=137
        ),
    ),
    good=(
        Example("(APIServer pid=1) INFO:     Application startup complete.\n", exit_status=0),
        Example(
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] torch.OutOfMemoryError: CUDA out of memory.\n"
            "(APIServer pid=1) WARNING 11-30 03:43:16 [core_client.py:817] [shutdown] MPClient: engine core exited "
            "unexpectedly; starting cleanup\n"
        ),
    ),
)
