"""The share asked for is above what an otherwise idle card leaves free.

What it does: reads free and total memory from vLLM's check at its start, and speaks where hardly anything but the
    driver's own part is missing.
Why it matters: vLLM stops before it loads anything, on a card that nobody else uses: context, display and driver keep
    some hundred MiB.
How to fix: give the share named, or less. Do not look for another process: none holds the card.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/utils.py (request_memory), vLLM 0.26; vllm/v1/worker/gpu_worker.py, vLLM 0.8.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.log.memory_held_by_others import FREE, is_idle
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(FREE)
    if hit is None or not is_idle(hit):
        return
    share = floor((hit.number("free") / hit.number("total") - 0.02) * 100) / 100
    yield context.finding(
        hit,
        msg(
            "--gpu-memory-utilization {share} asks for {wanted} GiB and an idle card of {total} GiB leaves {free} GiB; "
            "{fits:.2f} fits",
            zh="--gpu-memory-utilization {share} 需要 {wanted} GiB，而 {total} GiB 的空闲显卡只能提供 {free} "
            "GiB；可以用 {fits:.2f}",
            share=hit["share"],
            wanted=hit["wanted"],
            total=hit["total"],
            free=hit["free"],
            fits=share,
        ),
        SURE,
        fix=set_flag(context, "gpu-memory-utilization", f"{share:.2f}"),
    )


RULE = Rule(
    code="LOG002",
    name="utilization-above-idle-card",
    severity=Severity.ERROR,
    summary=msg(
        "The share asked for is above what an otherwise idle card leaves free.",
        zh="要求的显存比例高于空闲显卡实际能提供的量。",
    ),
    check=check,
    cause=Cause.UTILIZATION_TOO_HIGH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/utils.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'gpu_memory_utilization': 0.995}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: Free memory on device "
            "cuda:0 (138.27/139.8 GiB) on startup is less than desired GPU memory utilization (0.995, "
            "139.1 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
            at="line 3: ValueError: Free memory",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --gpu-memory-utilization 0.96",
        ),
    ),
    good=(
        Example(
            "ValueError: Free memory on device cuda:0 (61.2/79.25 GiB) on startup is less than desired "
            "GPU memory utilization (0.92, 72.91 GiB).\n"
        ),
    ),
)
