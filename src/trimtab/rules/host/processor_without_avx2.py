"""The processor has no AVX2, which vLLM's CPU build needs.

What it does: reads the processor's flags where the launch runs on the CPU of an x86-64 host.
Why it matters: the kernels end with an illegal instruction (SIGILL) as soon as one is called.
How to fix: use a processor of 2013 or later, a virtual machine type that passes the flag on (CPU host), or a GPU.
When to ignore: never: the kernels hold AVX2 instructions.
Sources: docs/getting_started/installation/cpu.md and csrc/cpu, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    if record.on_gpu or record.processor.machine != "x86_64" or not record.processor.model:
        return
    if "AVX2" not in record.processor.features:
        yield Finding(
            msg(
                "{cpu} shows no AVX2, which the CPU build of vLLM needs",
                zh="{cpu} 没有 AVX2，而 vLLM 的 CPU 版需要它",
                cpu=record.processor.model,
            )
        )


RULE = Rule(
    code="HST502",
    name="processor-without-avx2",
    severity=Severity.ERROR,
    summary=msg(
        "The processor has no AVX2, which vLLM's CPU build needs.",
        zh="处理器没有 vLLM 的 CPU 版所需的 AVX2。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/getting_started/installation/cpu.md",),
    bad=(
        Example(
            '{"wanted": {"on_cpu": true}, "processor": {"model": "QEMU Virtual CPU version 2.5+", "features": []}}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"on_cpu": true}, "processor": {"model": "AMD EPYC", "features": ["AVX2"]}}\n',
        ),
        Example(
            '{"processor": {"model": "QEMU Virtual CPU version 2.5+", "features": []}}\n',
        ),
    ),
)
