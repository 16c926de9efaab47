"""Less memory is free on the card than --gpu-memory-utilization claims: something else holds it.

What it does: reads how much was free, how much there is and how much vLLM wanted, as versions from 0.8 on print it.
Why it matters: vLLM stops before it loads anything. The share is of the whole card, not of what is free.
How to fix: see who holds the memory (`nvidia-smi`, or `trimtab check`) and end it: often an engine left over from the
    start before. Else give the share that is free now. Do not raise the share: it asks for more.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/utils.py (request_memory), vLLM 0.26; vllm/v1/worker/gpu_worker.py, vLLM 0.8.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, Hit, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

FREE = (
    r"Free memory on device(?: \S+)? \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than "
    r"(?:desired GPU memory utilization|the engine's budget after excluding external process's weights) "
    r"\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)"
)


LEAST = 0.1
"""Share below which no server is worth a start."""
IDLE = 0.96
"""Share of a card that is free at least while nobody uses it; driver, context and display keep the rest."""


def is_idle(hit: Hit) -> bool:
    """Whether nothing but the driver's own part of the card is taken."""
    return hit.number("free") / hit.number("total") >= IDLE


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(FREE)
    if hit is None or is_idle(hit):
        return
    free, total = hit.number("free"), hit.number("total")
    share = floor((free / total - 0.02) * 100) / 100
    yield context.finding(
        hit,
        msg(
            "{free} of {total} GiB are free and --gpu-memory-utilization {share} asks for {wanted} GiB: another "
            "process holds {held:.1f} GiB",
            zh="{total} GiB 中只有 {free} GiB 空闲，--gpu-memory-utilization {share} 需要 {wanted} GiB：其他进程占用了 "
            "{held:.1f} GiB",
            free=hit["free"],
            total=hit["total"],
            share=hit["share"],
            wanted=hit["wanted"],
            held=total - free,
        ),
        SURE,
        fix=set_flag(context, "gpu-memory-utilization", f"{share:.2f}") if share >= LEAST else None,
    )


RULE = Rule(
    code="LOG001",
    name="memory-held-by-others",
    severity=Severity.ERROR,
    summary=msg(
        "Less memory is free on the card than --gpu-memory-utilization claims.",
        zh="显卡空闲显存少于 --gpu-memory-utilization 要求的量。",
    ),
    check=check,
    cause=Cause.GPU_MEMORY_HELD_BY_OTHER,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/utils.py",),
    bad=(
        Example(
            "ValueError: Free memory on device cuda:0 (61.2/79.25 GiB) on startup is less than desired GPU memory "
            "utilization (0.92, 72.91 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
            "processes.\n",
            at="line 1: ValueError: Free memory on device cuda:0 (61.2/79.25 GiB) on startup is less than desired GPU "
            "memory utilization (0.92, 72.91 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
            "processes.",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [gpu_worker.py:1] Available KV cache memory: 12.20 GiB\n"),),
)
