"""The tensor-parallel size and the number of key-value heads do not divide one another.

What it does: checks that the KV heads split evenly over the ranks, or that each is copied to the same number of ranks.
Why it matters: vLLM asserts it while building the model and dies with a bare AssertionError.
How to fix: take a size that divides the KV heads, or a multiple of their number.
When to ignore: for MLA models, whose cache is not split by heads; they are left out here.
Sources: vllm/model_executor/models/llama.py and qwen2.py (LlamaAttention, Qwen2Attention), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("tensor-parallel-size")
    tp = context.integer("tensor-parallel-size", 1) or 1
    if use is None or tp <= 1:
        return
    model = context.require_decoder()
    if model.heads % tp or any(layer.attention and layer.attention.kind == "mla" for layer in model.layers):
        return  # the heads' own rule speaks
    kv = model.kv_heads
    if kv <= 0 or kv % tp == 0 or tp % kv == 0:
        return
    legal = [n for n in range(1, tp + 1) if model.heads % n == 0 and (kv % n == 0 or n % kv == 0)]
    yield Finding(
        msg(
            "{kv} key-value heads cannot be spread evenly over {tp} ranks; sizes that can: {legal}",
            zh="{kv} 个 KV 头不能平均分到 {tp} 个 rank；可用的数：{legal}",
            kv=kv,
            tp=tp,
            legal=", ".join(map(str, legal)),
        ),
        use.value_span or use.span,
        context.set_value(use, str(legal[-1]), Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD102",
    name="tensor-parallel-not-dividing-kv-heads",
    severity=Severity.ERROR,
    summary=msg(
        "The tensor-parallel size and the number of key-value heads do not divide one another.",
        zh="张量并行数与 KV 头数互不整除。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/qwen2.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 7\n",
            at="7",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct -tp 4\n",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example("vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2\n", model="qwen2.5-7b"),
        Example("vllm serve Qwen/Qwen2.5-7B-Instruct -tp 28\n", model="qwen2.5-7b"),
    ),
)
