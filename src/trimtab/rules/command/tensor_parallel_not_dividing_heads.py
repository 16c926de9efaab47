"""The tensor-parallel size does not divide the model's attention heads.

What it does: compares --tensor-parallel-size with the number of attention heads in the model's config.
Why it matters: vLLM gives each rank the same number of heads and refuses to start when they do not come out even.
How to fix: take a divisor of the head count, and use the other GPUs for pipeline parallelism or a second server.
When to ignore: never; the check is vLLM's own and stops the start.
Sources: vllm/config/model.py (verify_with_parallel_config), vLLM 0.26; vllm/config.py in older versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.plan.parallel import IN_MACHINES
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("tensor-parallel-size")
    tp = context.integer("tensor-parallel-size", 1) or 1
    if use is None or tp <= 1:
        return
    heads = context.require_decoder().heads
    if heads <= 0 or heads % tp == 0:
        return
    legal = [n for n in IN_MACHINES if n <= tp and heads % n == 0]
    yield Finding(
        msg(
            "{heads} attention heads do not divide by a tensor-parallel size of {tp}; sizes that do: {legal}",
            zh="{heads} 个注意力头不能被张量并行数 {tp} 整除；可用的数：{legal}",
            heads=heads,
            tp=tp,
            legal=", ".join(map(str, legal)),
        ),
        use.value_span or use.span,
        context.set_value(use, str(legal[-1]), Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD101",
    name="tensor-parallel-not-dividing-heads",
    severity=Severity.ERROR,
    summary=msg(
        "The tensor-parallel size does not divide the model's attention heads.",
        zh="张量并行数不能整除模型的注意力头数。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 8\n",
            at="8",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 4\n",
            model="qwen2.5-7b",
        ),
    ),
    good=(Example("vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 4\n", model="qwen2.5-7b"),),
)
