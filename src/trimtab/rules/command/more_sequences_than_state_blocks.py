"""More sequences than the recurrent layers have state blocks for.

What it does: in models with Mamba, Gated DeltaNet or other recurrent layers, compares --max-num-seqs (or its default
    on this card) with the number of cache blocks that are predicted.
Why it matters: each running sequence needs a state block; from 0.20 on vLLM refuses to start ("max_num_seqs exceeds
    available Mamba cache blocks") unless CUDA graphs are off.
How to fix: take the number in the message, the largest that fits.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/config/compilation.py (resolve_cudagraph_mode_and_sizes), vLLM 0.20 and 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, fix_to, lacks_states
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    model = context.require_model()
    if not any(layer.recurrent for layer in model.layers):
        return
    case = context.memory
    report = case.budget() if case else None
    if case is None or report is None or not lacks_states(report):
        return
    value = case.largest("max_num_seqs", range(1, report.settings.max_num_seqs), lambda b: not lacks_states(b))
    found = Remedy("max-num-seqs", value) if value else None
    yield Finding(
        msg(
            "{seqs} sequences need a state block each; {blocks} blocks fit on {card}",
            zh="{seqs} 个序列各需一个状态块；{card} 只能放 {blocks} 块",
            seqs=report.settings.max_num_seqs,
            blocks=report.capacity.num_blocks,
            card=report.tightest.card.name,
        ),
        context.place("max-num-seqs", "max-model-len"),
        fix_to(context, found),
    )


RULE = Rule(
    code="CMD509",
    name="more-sequences-than-state-blocks",
    severity=Severity.ERROR,
    summary=msg(
        "More sequences than the recurrent layers have state blocks for.",
        zh="并发序列数多于循环层的状态块数。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/compilation.py",),
    since="0.20",
    bad=(
        Example(
            "vllm serve org/hybrid --max-model-len 8192 --max-num-seqs 4096 --kv-cache-memory-bytes 8G\n",
            at="4096",
            fixed="vllm serve org/hybrid --max-model-len 8192 --max-num-seqs 2570 --kv-cache-memory-bytes 8G\n",
            vllm="0.26.0",
            gpu="H100-80",
            model="qwen3-next-12layers",
        ),
    ),
    good=(
        Example(
            "vllm serve org/hybrid --max-model-len 8192 --max-num-seqs 256 --kv-cache-memory-bytes 8G\n",
            vllm="0.26.0",
            gpu="H100-80",
            model="qwen3-next-12layers",
        ),
    ),
)
