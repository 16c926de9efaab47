"""A checkpoint packed by bitsandbytes is split over tensor-parallel ranks.

What it does: says when a checkpoint whose config names bitsandbytes is served with a tensor-parallel size above 1.
Why it matters: its quantisation states cannot follow a split tensor; vLLM stops while loading with "Prequant
    BitsAndBytes models with tensor parallelism is not supported".
How to fix: --pipeline-parallel-size in its place; or take the 16-bit checkpoint and let vLLM pack it while loading
    (--quantization bitsandbytes), or another packing (AWQ, GPTQ, FP8).
When to ignore: never; the check is vLLM's own.
Sources: vllm/model_executor/model_loader/bitsandbytes_loader.py, 0.26 (loader.py before 0.9), the same from 0.6.2 on.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    size = context.integer("tensor-parallel-size", 1) or 1
    if size <= 1:
        return
    quantisation = context.require_config().quantisation
    if quantisation is None or quantisation.method != "bitsandbytes":
        return
    yield Finding(
        msg(
            "this checkpoint is packed by bitsandbytes, which no tensor-parallel ranks can share: use "
            "--pipeline-parallel-size {size}, or the 16-bit checkpoint",
            zh="该模型已用 bitsandbytes 量化，不能做张量并行：请改用 --pipeline-parallel-size {size}，或使用 16 位权重",
            size=size,
        ),
        context.place("tensor-parallel-size"),
    )


RULE = Rule(
    code="CMD108",
    name="prequantised-bitsandbytes-across-ranks",
    severity=Severity.ERROR,
    since="0.6.2",
    until="0.27",
    summary=msg(
        "A checkpoint packed by bitsandbytes is split over tensor-parallel ranks.",
        zh="已用 bitsandbytes 量化的模型被设为张量并行。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/model_loader/bitsandbytes_loader.py",
    ),
    bad=(Example("vllm serve m -tp 2\n", at="2", vllm="0.7.3", model="unsloth/Qwen2.5-7B-Instruct-bnb-4bit"),),
    good=(
        Example("vllm serve m -pp 2\n", vllm="0.7.3", model="unsloth/Qwen2.5-7B-Instruct-bnb-4bit"),
        Example("vllm serve m -tp 2 --quantization bitsandbytes\n", vllm="0.9.2", model="Qwen/Qwen2.5-7B-Instruct"),
    ),
)
