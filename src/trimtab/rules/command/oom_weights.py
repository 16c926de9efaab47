"""A rank's share of the weights is larger than the card.

What it does: adds the bytes of every weight as vLLM holds it on a rank (fused, padded, packed) and the CUDA context,
    and compares the sum with the memory that the card's driver reports.
Why it matters: loading ends in "CUDA out of memory" after minutes of reading.
How to fix: split the model over more cards, take a quantised checkpoint, or cards with more memory.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/model_executor/layers (create_weights of each layer), vLLM 0.26; `trimtab budget --explain` shows the sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import blamed, tensor_size
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "oom-weights"):
        rank = max(blame.report.ranks, key=lambda r: r.weights.value)
        size = tensor_size(context, blame.case, blame.report)
        given = context.require_gpus().count
        advice = (
            msg("--tensor-parallel-size {size} fits", zh="--tensor-parallel-size {size} 可以放下", size=size)
            if size
            else msg("no tensor-parallel size up to 16 fits", zh="16 以内没有能放下的张量并行数")
        )
        fix = context.set_flag("tensor-parallel-size", str(size), Grade.UNSAFE) if size and size <= given else None
        yield Finding(
            msg(
                "{weights:.1f} GiB of weights on each GPU; {card} has {total:.1f} GiB; {advice}",
                zh="每张卡要放 {weights:.1f} GiB 权重，{card} 只有 {total:.1f} GiB；{advice}",
                weights=rank.weights.value,
                card=rank.card.name,
                total=rank.card.total_gib,
                advice=advice,
            ),
            context.place("tensor-parallel-size"),
            fix,
        )


RULE = Rule(
    code="CMD501",
    name="oom-weights",
    severity=Severity.ERROR,
    summary=msg("A rank's share of the weights is larger than the card.", zh="单卡上的权重超过显存。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 2\n",
            at="2",
            fixed="vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4\n",
            vllm="0.26.0",
            gpu="8xL40S",
            model="qwen2.5-72b",
        ),
    ),
    good=(
        Example(
            "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4\n",
            vllm="0.26.0",
            gpu="8xL40S",
            model="qwen2.5-72b",
        ),
    ),
)
