"""The processor has no AVX512: vLLM's CPU build runs on AVX2, without bf16 in hardware.

What it does: reads the processor's flags where the launch runs on the CPU of an x86-64 host.
Why it matters: AVX2 kernels are slower, and bfloat16 is emulated.
How to fix: nothing for trials; for more speed a processor with AVX512 and AMX.
When to ignore: for trials, which it does not hinder.
Sources: docs/getting_started/installation/cpu.md, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    features = record.processor.features
    if record.on_gpu or record.processor.machine != "x86_64" or "AVX512" in features or "AVX2" not in features:
        return
    yield Finding(
        msg(
            "{cpu} has no AVX512: the CPU build runs its AVX2 kernels, and bfloat16 is emulated",
            zh="{cpu} 没有 AVX512：CPU 版使用 AVX2 内核，bfloat16 由软件模拟",
            cpu=record.processor.model,
        )
    )


RULE = Rule(
    code="HST503",
    name="processor-without-avx512",
    severity=Severity.INFO,
    summary=msg(
        "The processor has no AVX512: vLLM's CPU build runs on AVX2, without bf16 in hardware.",
        zh="处理器没有 AVX512：vLLM 的 CPU 版以 AVX2 运行，没有硬件 bf16。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/getting_started/installation/cpu.md",),
    bad=(
        Example(
            '{"wanted": {"on_cpu": true}, "processor": {"model": "AMD EPYC 7302", "features": ["AVX2"]}}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"on_cpu": true}, "processor": {"model": "AMD EPYC 9554", "features": ["AVX2", "AVX512", '
            '"AVX512_BF16"]}}\n',
        ),
    ),
)
