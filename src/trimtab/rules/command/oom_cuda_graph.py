"""CUDA graphs do not fit beside the KV cache.

What it does: adds what capturing CUDA graphs takes to weights, peak and KV cache, and compares with the card.
Why it matters: vLLM sizes the KV cache first and then dies of "CUDA out of memory" while it captures.
How to fix: lower the flag named in the message, or give up graphs with --enforce-eager.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/v1/worker/gpu_model_runner.py (capture_model), vLLM 0.26; envs.py
    (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS), vLLM 0.20.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, advice, blamed, fix_to, remedy, safe_utilization
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "oom-cuda-graph"):
        util = safe_utilization(blame.case, blame.report)
        others = remedy(blame.case, blame.report, "kv_cache_memory_bytes", "max_num_seqs")
        found = Remedy("gpu-memory-utilization", util) if util else others
        rank = min(blame.report.ranks, key=lambda r: r.headroom.value)
        yield Finding(
            msg(
                "CUDA graphs take {graphs:.2f} GiB, {short:.2f} GiB more than {card} has left; {advice}",
                zh="CUDA graph 需要 {graphs:.2f} GiB，比 {card} 剩余的多 {short:.2f} GiB；{advice}",
                graphs=rank.graphs.value,
                short=-rank.headroom.value,
                card=rank.card.name,
                advice=advice(found),
            ),
            context.place("kv-cache-memory-bytes", "max-num-seqs"),
            fix_to(context, found),
        )


RULE = Rule(
    code="CMD505",
    name="oom-cuda-graph",
    severity=Severity.ERROR,
    summary=msg("CUDA graphs do not fit beside the KV cache.", zh="KV 缓存之外放不下 CUDA graph。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 --kv-cache-memory-bytes 7G\n",
            at="7G",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 --kv-cache-memory-bytes 5368709120\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
)
