"""float16 for a model that is numerically unstable in it.

What it does: looks for --dtype half or float16 with a model type that vLLM does not run in float16 (Gemma 2 and 3,
    GLM-4 0414).
Why it matters: vLLM refuses to start: "The model type does not support float16".
How to fix: bfloat16 on compute capability 8.0 and newer, float32 on older cards.
When to ignore: never; the check is vLLM's own.
Sources: vllm/config/model.py (_FLOAT16_NOT_SUPPORTED_MODELS), vLLM 0.26 and 0.33; vllm/config.py, 0.9.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.plan.dtypes import FLOAT32_INSTEAD
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("dtype")
    if use is None or use.value not in ("half", "float16"):
        return
    model_type = context.require_config().model_type
    if model_type not in FLOAT32_INSTEAD:
        return
    capability = context.require_capability() if context.gpus is not None else None
    fitting = "float32" if capability is not None and capability < (8, 0) else "bfloat16"
    yield Finding(
        msg(
            "models of type {kind} are not run in float16; {dtype} works",
            zh="{kind} 类模型不支持 float16；可用 {dtype}",
            kind=model_type,
            dtype=fitting,
        ),
        use.value_span or use.span,
        context.set_value(use, fitting, Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD208",
    name="float16-unsupported-by-model",
    severity=Severity.ERROR,
    summary=msg("float16 for a model that is numerically unstable in it.", zh="该模型用 float16 数值不稳定。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/model.py",),
    since="0.9.2",
    bad=(
        Example(
            "vllm serve m --dtype half\n",
            at="half",
            fixed="vllm serve m --dtype bfloat16\n",
            model="gemma-3-27b-text",
        ),
    ),
    good=(
        Example("vllm serve m --dtype bfloat16\n", model="gemma-3-27b-text"),
        Example("vllm serve m --dtype half\n", model="qwen2.5-7b"),
    ),
)
