"""--gpu-memory-utilization asks for more than is free when vLLM starts.

What it does: takes the CUDA context from the card's memory and compares the rest with utilisation x the whole card.
Why it matters: V1 checks it first and refuses ("Free memory on device ... is less than desired GPU memory
    utilization").
How to fix: take the value in the message, the highest at which the launch fits.
When to ignore: never on a whole card; what other processes hold comes on top and is not counted here.
Sources: vllm/v1/worker/gpu_worker.py (init_device), vLLM 0.10 and 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, advice, blamed, fix_to, safe_utilization
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "free-memory-below-utilization"):
        util = safe_utilization(blame.case, blame.report)
        found = Remedy("gpu-memory-utilization", util) if util else None
        rank = blame.report.tightest
        yield Finding(
            msg(
                "utilization {util} asks for {need:.2f} GiB of {card}; {free:.2f} GiB are free at the start; {advice}",
                zh="显存利用率 {util} 要求 {card} 上有 {need:.2f} GiB，启动时只有 {free:.2f} GiB 空闲；{advice}",
                util=blame.report.settings.gpu_memory_utilization,
                need=rank.requested.value,
                card=rank.card.name,
                free=rank.card.total_gib - rank.context.before.value,
                advice=advice(found),
            ),
            context.place("gpu-memory-utilization"),
            fix_to(context, found),
        )


RULE = Rule(
    code="CMD507",
    name="free-memory-below-utilization",
    severity=Severity.ERROR,
    summary=msg(
        "--gpu-memory-utilization asks for more than is free when vLLM starts.",
        zh="--gpu-memory-utilization 要求的显存多于启动时的空闲显存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",),
    since="0.9",
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.99\n",
            at="0.99",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.94\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.9\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
)
