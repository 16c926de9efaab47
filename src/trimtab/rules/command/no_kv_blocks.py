"""Nothing is left for the KV cache.

What it does: takes weights, activation peak and what vLLM deducts from utilisation x the card's memory, and says when
    the rest does not hold one block.
Why it matters: vLLM stops with "No available memory for the cache blocks".
How to fix: lower the flag named in the message, split over more cards, or take a quantised checkpoint.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/v1/core/kv_cache_utils.py (check_enough_kv_cache_memory), vLLM 0.26; vllm/worker/worker.py, vLLM 0.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import advice, blamed, fix_to, hedged, remedy
from trimtab.rules.rule import Example, Finding, Rule, Severity

REMEDIES = ("max_num_batched_tokens", "max_model_len", "max_num_seqs", "gpu_memory_utilization")


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "no-kv-blocks"):
        rank = blame.report.tightest
        found = remedy(blame.case, blame.report, *REMEDIES)
        yield Finding(
            msg(
                "{requested:.1f} GiB of {card} are for vLLM; weights take {weights:.1f} and the activation peak "
                "{activation:.1f}: nothing is left for the KV cache; {advice}",
                zh="{card} 上可用 {requested:.1f} GiB，权重 {weights:.1f} GiB，激活峰值 {activation:.1f} GiB，"
                "没有剩余显存放 KV 缓存；{advice}",
                requested=rank.requested.value,
                card=rank.card.name,
                weights=rank.weights.value,
                activation=rank.activation.value,
                advice=advice(found),
            ),
            context.place("gpu-memory-utilization", "max-model-len"),
            fix_to(context, found),
            severity=hedged(blame.report),
        )


RULE = Rule(
    code="CMD503",
    name="no-kv-blocks",
    severity=Severity.ERROR,
    summary=msg("Nothing is left for the KV cache.", zh="没有剩余显存放 KV 缓存。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/core/kv_cache_utils.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 1024 --gpu-memory-utilization 0.6\n",
            at="0.6",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 1024 --gpu-memory-utilization 0.94\n",
            vllm="0.26.0",
            gpu="L4",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 1024\n",
            vllm="0.26.0",
            gpu="L4",
            model="qwen2.5-7b",
        ),
    ),
)
