"""--dtype is none that the named quantisation method computes in.

What it does: looks for --quantization awq (up to 0.23) or gptq (up to 0.21) beside a --dtype other than half. Named so,
    vLLM keeps that kernel and does not take its Marlin one, which knows bfloat16.
Why it matters: vLLM stops: "torch.bfloat16 is not supported for quantization method awq. Supported dtypes:
    [torch.float16]".
How to fix: --dtype half; or, on compute capability 8.0 and newer, leave --quantization out.
When to ignore: never; the check is vLLM's own.
Sources: get_supported_act_dtypes in vllm/model_executor/layers/quantization/awq.py (0.4.3 to 0.23) and gptq.py (to
    0.21), override_quantization_method in awq_marlin.py and gptq_marlin.py (0.8.5, 0.20.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

MORE_SINCE = {"awq": "0.24", "gptq": "0.22"}
"""Method -> the first release whose kernel of that name computes in bfloat16 too."""
OTHERS = ("bfloat16", "float", "float32")


def check(context: CommandContext) -> Iterator[Finding]:
    method, use = context.command.get("quantization"), context.command.last("dtype")
    since = MORE_SINCE.get(method or "")
    if since is None or context.at_least(since) or use is None or use.value not in OTHERS or context.on_cpu:
        return
    yield Finding(
        msg(
            "{method} computes in float16 alone in {vllm}; --dtype {dtype} is refused",
            zh="在 {vllm} 中 {method} 只支持 float16；--dtype {dtype} 会被拒绝",
            method=method,
            vllm=words.vllm(context),
            dtype=use.value,
        ),
        use.value_span or use.span,
        context.set_value(use, "half", Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD209",
    name="dtype-unsupported-by-quantisation",
    severity=Severity.ERROR,
    summary=msg(
        "--dtype is none that the named quantisation method computes in.", zh="--dtype 不被所指定的量化方法支持。"
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.10.2/vllm/model_executor/layers/quantization/awq.py",
        "https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/model_executor/layers/quantization/gptq_marlin.py",
    ),
    until="0.23",
    bad=(
        Example(
            "vllm serve m --quantization awq --dtype bfloat16\n",
            at="bfloat16",
            fixed="vllm serve m --quantization awq --dtype half\n",
            vllm="0.10.2",
        ),
    ),
    good=(
        Example("vllm serve m --quantization awq --dtype half\n", vllm="0.10.2"),
        Example("vllm serve m --quantization gptq --dtype bfloat16\n", vllm="0.22.1"),
        Example("vllm serve m --quantization awq_marlin --dtype bfloat16\n", vllm="0.10.2"),
    ),
)
