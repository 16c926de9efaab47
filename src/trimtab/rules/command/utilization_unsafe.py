"""--gpu-memory-utilization leaves too little beside vLLM's own budget.

What it does: predicts what stays free at the peak: the card less context, weights, activations, KV cache and CUDA
    graphs. Below 0.3 GiB it warns; below nothing it is an error, where a lower utilisation would start.
Why it matters: the budget does not cover CUDA graphs (before 0.20), other processes, or a sampler's extra buffers, so
    the server dies while it captures graphs, or at night.
How to fix: take the value in the message, the highest that leaves room.
When to ignore: when the card is known to serve nothing else and the load is fixed.
Sources: vllm/v1/worker/gpu_worker.py (determine_available_memory), vLLM 0.26; measured with 0.26 on an H200, where
    0.995 sized its cache, captured graphs and ran out of memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, advice, blamed, fix_to, remedy, safe_utilization
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "utilization-unsafe"):
        util = safe_utilization(blame.case, blame.report)
        found = Remedy("gpu-memory-utilization", util) if util else remedy(blame.case, blame.report, "max_num_seqs")
        rank = min(blame.report.ranks, key=lambda r: r.headroom.value)
        left = rank.headroom.value
        yield Finding(
            msg(
                "at utilization {util} the peak needs {needed:.2f} GiB of the {total:.2f} GiB of {card}; {advice}",
                zh="显存利用率 {util} 时峰值需要 {needed:.2f} GiB，{card} 共 {total:.2f} GiB；{advice}",
                util=blame.report.settings.gpu_memory_utilization,
                needed=rank.card.total_gib - left,
                total=rank.card.total_gib,
                card=rank.card.name,
                advice=advice(found),
            ),
            context.place("gpu-memory-utilization"),
            fix_to(context, found),
            severity=Severity.ERROR if left < 0 else None,
        )


RULE = Rule(
    code="CMD506",
    name="utilization-unsafe",
    severity=Severity.WARNING,
    summary=msg(
        "--gpu-memory-utilization leaves too little beside vLLM's own budget.",
        zh="--gpu-memory-utilization 过高，没有给其他开销留出显存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.98\n",
            at="0.98",
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
