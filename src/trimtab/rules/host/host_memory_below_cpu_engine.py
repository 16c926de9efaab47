"""On a CPU the weights and the KV cache need more memory than is available.

What it does: adds the weights to the KV cache in host memory and compares the sum with what is available, container
    limit included.
Why it matters: vLLM's CPU back end holds both in host memory: the kernel kills it while it loads (exit code 137).
How to fix: take a smaller or quantised model, lower VLLM_CPU_KVCACHE_SPACE, or give the container more memory.
When to ignore: when other programs end before the engine starts.
Sources: vllm/platforms/cpu.py and vllm/v1/worker/cpu_worker.py, vLLM 0.33 (VLLM_CPU_KVCACHE_SPACE).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    weights = record.wanted.weights_bytes
    if record.on_gpu or weights is None or not record.memory.total_bytes:
        return
    need = weights + record.wanted.cache_bytes
    if need > record.memory.available_bytes:
        yield Finding(
            msg(
                "{weights:.1f} GiB of weights and {cache:.1f} GiB of KV cache need {need:.1f} GiB; {have:.1f} of "
                "{total:.1f} GiB are available",
                zh="{weights:.1f} GiB 权重与 {cache:.1f} GiB KV 缓存需要 {need:.1f} GiB；{total:.1f} GiB 中可用 "
                "{have:.1f} GiB",
                weights=weights / GIB,
                cache=record.wanted.cache_bytes / GIB,
                need=need / GIB,
                have=record.memory.available_bytes / GIB,
                total=(record.memory.limit_bytes or record.memory.total_bytes) / GIB,
            )
        )


RULE = Rule(
    code="HST102",
    name="host-memory-below-cpu-engine",
    severity=Severity.ERROR,
    summary=msg(
        "On a CPU the weights and the KV cache need more memory than is available.",
        zh="在 CPU 上，权重与 KV 缓存需要的内存多于可用内存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/platforms/cpu.py",),
    bad=(
        Example(
            '{"memory": {"total_bytes": 17179869184, "available_bytes": 10737418240}, "wanted": {"on_cpu": true, '
            '"weights_bytes": 16106127360, "cache_bytes": 4294967296}}\n',
        ),
    ),
    good=(
        Example(
            '{"memory": {"total_bytes": 17179869184, "available_bytes": 10737418240}, "wanted": {"on_cpu": true, '
            '"weights_bytes": 1073741824, "cache_bytes": 4294967296}}\n',
        ),
    ),
)
