"""Open files, threads or processes are limited too low.

What it does: reads the system's refusals of one more file, thread or process.
Why it matters: each request is an open socket, each rank tens of threads; containers and services have limits of
    their own.
How to fix: raise the limit where the server is started: LimitNOFILE= and TasksMax= in systemd, --ulimit nofile and
    --pids-limit in Docker; set OMP_NUM_THREADS to fewer threads.
When to ignore: when the warning about the file limit stands alone: the server runs.
Sources: errno 11 and 24; vllm/utils/system_utils.py (set_ulimit).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Too many open files(?!`)",
    r"can't start new thread",
    r"pthread_create (?:failed|error)|Thread creation failed",
    r"(?:BlockingIOError|OSError|fork|clone).{0,60}Resource temporarily unavailable",
    r"libgomp: .*[Rr]esource temporarily unavailable|OpenBLAS .*pthread_create",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is not None and "Found ulimit of" not in hit.entry.text:
        message = msg(
            "a limit on open files, threads or processes was reached: {said}",
            zh="达到了打开文件、线程或进程数的限制：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, SURE)


RULE = Rule(
    code="LOG406",
    name="process-limit-too-low",
    severity=Severity.ERROR,
    summary=msg("Open files, threads or processes are limited too low.", zh="打开文件、线程或进程数的限制太低。"),
    check=check,
    cause=Cause.PROCESS_LIMIT_TOO_LOW,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/system_utils.py",),
    bad=(
        Example("OSError: [Errno 24] Too many open files\n"),
        Example("RuntimeError: can't start new thread\n"),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [system_utils.py:255] Found ulimit of 1024 and failed to automatically "
            "increase. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. "
            "Consider increasing with ulimit -n\n"
        ),
    ),
)
