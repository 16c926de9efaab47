"""--dtype float means 32 bit, not 16.

What it does: marks `--dtype float` and `--dtype float32`.
Why it matters: weights and KV cache take twice the memory of 16 bit, and most attention back ends do not take them.
How to fix: write `auto`, or `bfloat16` on compute capability 8.0 and newer, or `half`.
When to ignore: when 32 bit is wanted, for a small embedding model or a numerical comparison. Silent where nothing else
    runs: Gemma 2 and 3 and GLM-4 below compute capability 8.0.
Sources: vllm/config/model.py (_STR_DTYPE_TO_TORCH_DTYPE maps "float" to torch.float32), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.plan.dtypes import FLOAT32_INSTEAD
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("dtype")
    if use is None or use.value not in ("float", "float32") or _needed(context):
        return
    yield Finding(
        msg(
            "--dtype {value} is 32 bit: twice the memory of 16 bit for weights and KV cache",
            zh="--dtype {value} 是 32 位：权重和 KV 缓存的显存是 16 位的两倍",
            value=use.value,
        ),
        use.value_span or use.span,
        context.set_value(use, "auto", Grade.UNSAFE),
    )


def _needed(context: CommandContext) -> bool:
    """Whether neither kind of 16 bit runs: the cards have no bfloat16, and vLLM runs the model in no float16."""
    if context.gpus is None or context.model is None:
        return False
    capability = context.require_capability()
    return capability is not None and capability < (8, 0) and context.model.model_type in FLOAT32_INSTEAD


RULE = Rule(
    code="CMD202",
    name="dtype-float-is-float32",
    severity=Severity.WARNING,
    summary=msg("--dtype float means 32 bit, not 16.", zh="--dtype float 是 32 位而不是 16 位。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(Example("vllm serve m --dtype float\n", at="float", fixed="vllm serve m --dtype auto\n"),),
    good=(Example("vllm serve m --dtype half\n"),),
)
