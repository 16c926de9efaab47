"""More sequences at once than the KV cache has blocks.

What it does: compares --max-num-seqs, where it is given, with the number of KV cache blocks that are predicted.
Why it matters: each running sequence holds at least one block, so the rest can never run together: vLLM preempts and
    recomputes them, and its CUDA graphs and sampler buffers for that many sequences take memory for nothing.
How to fix: take the number in the message or fewer; few workloads run at one block a sequence.
When to ignore: never; the limit cannot be reached on these cards.
Sources: vllm/v1/core/kv_cache_manager.py (allocate_slots), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, fix_to
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    seqs = context.size("max-num-seqs")
    if seqs is None:
        return
    if any(layer.recurrent for layer in context.require_model().layers):
        return  # their state blocks have a rule of their own
    case = context.memory
    report = case.budget() if case else None
    if case is None or report is None or report.verdict not in ("fits", "unsafe_headroom"):
        return
    if seqs <= report.capacity.num_blocks or not report.layout.groups:  # an encoder keeps no cache
        return
    value = case.largest("max_num_seqs", range(1, seqs), lambda b: b.settings.max_num_seqs <= b.capacity.num_blocks)
    yield Finding(
        msg(
            "{seqs} sequences at once, but the KV cache has {blocks} blocks of {size} tokens on {card}",
            zh="最多 {seqs} 个并发序列，但 {card} 上的 KV 缓存只有 {blocks} 块（每块 {size} 个 token）",
            seqs=seqs,
            blocks=report.capacity.num_blocks,
            size=report.capacity.block_size,
            card=report.tightest.card.name,
        ),
        context.place("max-num-seqs"),
        fix_to(context, Remedy("max-num-seqs", value) if value else None),
    )


RULE = Rule(
    code="CMD508",
    name="more-sequences-than-kv-blocks",
    severity=Severity.WARNING,
    summary=msg("More sequences at once than the KV cache has blocks.", zh="并发序列数多于 KV 缓存的块数。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/core/kv_cache_manager.py",),
    bad=(
        Example(
            "vllm serve m --max-model-len 4096 --max-num-seqs 512 --kv-cache-memory-bytes 256M\n",
            at="512",
            fixed="vllm serve m --max-model-len 4096 --max-num-seqs 292 --kv-cache-memory-bytes 256M\n",
            vllm="0.26.0",
            gpu="L40S",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example(
            "vllm serve m --max-model-len 4096 --max-num-seqs 128 --kv-cache-memory-bytes 256M\n",
            vllm="0.26.0",
            gpu="L40S",
            model="qwen2.5-7b",
        ),
    ),
)
