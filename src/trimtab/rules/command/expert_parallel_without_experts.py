"""--enable-expert-parallel for a model without experts.

What it does: says when expert parallelism is asked for and no layer of the model has experts.
Why it matters: it does nothing for a dense model; whoever set it expects another split of the weights than there is.
How to fix: take the flag out, and split by tensor parallelism.
When to ignore: in a script that serves several models.
Sources: vllm/model_executor/layers/fused_moe/config.py (FusedMoEParallelConfig.make), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("enable-expert-parallel")
    if use is None or use.negated:
        return
    model = context.require_decoder()
    if not model.layers or any(layer.moe for layer in model.layers):
        return
    yield Finding(
        msg(
            "none of the {layers} layers of {architecture} has experts",
            zh="{architecture} 的 {layers} 层都没有专家",
            layers=model.num_layers,
            architecture=model.architecture,
        ),
        use.span,
        context.remove(use, Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD106",
    name="expert-parallel-without-experts",
    severity=Severity.WARNING,
    summary=msg("--enable-expert-parallel for a model without experts.", zh="没有专家的模型使用了专家并行。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/layers/fused_moe/config.py",),
    bad=(
        Example(
            "vllm serve m --enable-expert-parallel --port 8001\n",
            at="--enable-expert-parallel",
            fixed="vllm serve m --port 8001\n",
            model="qwen2.5-7b",
        ),
    ),
    good=(Example("vllm serve m --enable-expert-parallel\n", model="qwen3-30b-a3b"),),
)
