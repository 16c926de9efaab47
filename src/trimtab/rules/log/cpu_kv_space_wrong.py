"""The space for the KV cache on the CPU is too large for memory, or too small.

What it does: reads how much the CPU engine wanted and what the node has, and the old engine's words for too little of
    it.
Why it matters: the space is taken from the memory of one NUMA node at the start; the default of 4 GiB, or half of the
    node in newer versions, may be either.
How to fix: set VLLM_CPU_KVCACHE_SPACE (whole GiB) or --kv-cache-memory-bytes to what the node has free and one
    request of the context needs.
When to ignore: never; the start ended.
Sources: vllm/v1/worker/cpu_worker.py, vllm/platforms/cpu.py, vllm/worker/cpu_worker.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import EVERYWHERE, SURE, VAGUE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"Available memory on node (?P<node>\d+) \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on (?:startup|kv "
        r"cache)\s+ ?(?:allocation )?is less than (?:desired|requested)[^.(]*\((?P<wanted>[^)]*)\)"
    ),
    r"Try increasing `?VLLM_CPU_KVCACHE_SPACE`?|Invalid environment variable VLLM_CPU_KVCACHE_SPACE",
    r"VLLM_CPU_KVCACHE_SPACE.{0,80}(?:too (?:small|large)|exceed|not enough)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        framed = context.framed(READ)
        if framed is None or not framed.entry.text.startswith("ValueError: invalid literal for int()"):
            yield from not_chosen(context)
            return
        hit = framed
    if words.group(hit, "node"):
        message = msg(
            "NUMA node {node} has {free} of {total} GiB free, and the engine wants {wanted}",
            zh="NUMA 节点 {node} 空闲 {free}/{total} GiB，而引擎需要 {wanted}",
            node=hit["node"],
            free=hit["free"],
            total=hit["total"],
            wanted=hit["wanted"],
        )
    else:
        message = msg(
            "the KV cache's space on the CPU does not fit: {said}",
            zh="CPU 上的 KV 缓存空间不合适：{said}",
            said=hit.entry.text[:240],
        )
    yield context.finding(hit, message, SURE)


UNSET = r"VLLM_CPU_KVCACHE_SPACE.{0,60}not set[.,] [Uu]sing (?P<default>\d+)"


def not_chosen(context: LogContext) -> Iterator[Finding]:
    """Nobody chose the space; it is worth knowing where requests fail or wait."""
    hit = context.first(UNSET, kinds=EVERYWHERE)
    if hit is not None:
        message = msg(
            "VLLM_CPU_KVCACHE_SPACE is not set: the KV cache has {default} GiB, whatever the context needs",
            zh="未设置 VLLM_CPU_KVCACHE_SPACE：KV 缓存为 {default} GiB，不管上下文需要多少",
            default=hit["default"],
        )
        yield context.finding(hit, message, VAGUE, severity=Severity.INFO)


READ = r"VLLM_CPU_KVCACHE_SPACE"


RULE = Rule(
    code="LOG512",
    name="cpu-kv-space-wrong",
    severity=Severity.ERROR,
    summary=msg(
        "The space for the KV cache on the CPU is too large for memory, or too small.",
        zh="CPU 上的 KV 缓存空间对内存来说太大，或太小。",
    ),
    check=check,
    cause=Cause.CPU_KV_SPACE_WRONG,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/cpu_worker.py",),
    bad=(
        Example(
            "ValueError: Available memory on node 0 (11.2/13.59 GiB) on kv cache allocation is less than "
            "requested memory for kv (900.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, "
            "or reduce CPU memory used by other processes.\n"
        ),
        Example(
            "ValueError: No available memory for the cache blocks. Try increasing `VLLM_CPU_KVCACHE_SPACE` "
            "when initializing the engine.\n"
        ),
        Example(
            "WARNING 11-30 03:43:16 [cpu.py:1] Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU "
            "backend is not set, using 4 by default.\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [cpu_worker.py:260] Explicitly set (1.0/12.46) GiB for KV cache on node 0.\n"),),
)
