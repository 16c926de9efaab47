"""A process crashed in compiled code.

What it does: recognises segmentation faults and aborts by Python's, the shell's and vLLM's words and by the exit
    status.
Why it matters: No Python error is told. A library that does not fit torch, a driver's fault or a defect of a kernel
    make it.
How to fix: the lines above ("Fatal Python error" and the stack below it) name the module; reinstall it in the version
    torch wants, or try without the option that uses it.
When to ignore: on shutdown, after all requests were answered.
Sources: CPython's faulthandler; signal numbers 6 and 11.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Segmentation fault|!!! Segfault encountered|SIGSEGV(?! or other unexpected)|"
        r"Fatal Python error: (?:Segmentation|Aborted)|"
        r"exit(?:ed)?(?: with)?(?: "
        r"code| status)?:? ?\(?(?:139|134|-11|-6)\b",
        r"Failed (?:core|frontend) proc\(s\): .*: -(?:6|11)\b",
        r"^terminate called (?:without an active|after throwing)|"
        r"^Aborted\b|core dumped|SIGABRT|double free or corruption|malloc\(\): ",
    )
    status = context.facts.exit_status
    if hit is None and status not in (139, 134, -11, -6):
        return
    yield context.finding(
        [hit] if hit else [],
        msg(
            'a process crashed in compiled code: the stack below "Fatal Python error" or "Segfault encountered" names '
            "the module",
            zh='进程在编译代码中崩溃："Fatal Python error" 或 "Segfault encountered" 之后的调用栈会指出模块',
        ),
        POSSIBLE,
    )


RULE = Rule(
    code="LOG161",
    name="process-crashed",
    severity=Severity.ERROR,
    summary=msg("A process crashed in compiled code.", zh="进程在编译代码中崩溃。"),
    check=check,
    cause=Cause.SEGFAULT,
    sources=("https://docs.python.org/3/library/faulthandler.html",),
    bad=(
        Example(
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n",
            at="line 1: Fatal Python error",
        ),
        Example(
            "INFO:     Application startup complete.\n!!!!!!! Segfault encountered !!!!!!!\n"
            '  File "<unknown>", line 0, in _start\n',
            at="line 2: !!!!!!! Segfault",
        ),
        Example(
            "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore_DP1': -11}\n",
            at="line 1: RuntimeError",
        ),
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n", exit_status=-11
        ),
    ),
    good=(Example("Fatal Python error: Bus error\n"),),
)
