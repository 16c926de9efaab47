"""The quantisation method needs a newer GPU.

What it does: compares the lowest compute capability of the GPUs with the minimum that this vLLM states for the method
    (--quantization, else the checkpoint's own); and FP8 experts on --moe-backend triton with 8.9.
Why it matters: vLLM refuses to start: "The quantization method ... is not supported for the current GPU".
How to fix: take another checkpoint, or a vLLM whose minimum is lower (AWQ 8.0 to 0.2.0, then 7.5; FP8 8.9 in 0.4,
    8.0 from 0.5.4, 7.5 from 0.14).
When to ignore: never on CUDA; the check is vLLM's own.
Sources: get_min_capability of each method in vllm/model_executor/layers/quantization, every release read; the check in
    vllm/config/vllm.py (_get_quantization_config), 0.33; layers/fused_moe/experts/triton_moe.py, 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import least_capability
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

LEAST = 70
TRITON_FP8 = 89
TRITON_FP8_SINCE = "0.26"


def check(context: CommandContext) -> Iterator[Finding]:
    method = context.command.get("quantization")
    if method is None:
        quantisation = context.require_config().quantisation
        method = quantisation.method if quantisation else None
    if method is None:
        return
    needed = _minimum(context, method)
    if needed <= LEAST:
        return
    capability = context.require_capability()
    if capability is None or capability[0] * 10 + capability[1] >= needed:
        return
    yield Finding(
        msg(
            "{method} needs compute capability {needed:.1f} in vLLM {version}; {gpu} has {have:.1f}",
            zh="vLLM {version} 的 {method} 需要计算能力 {needed:.1f}；{gpu} 只有 {have:.1f}",
            method=method,
            needed=needed / 10,
            version=context.version,
            gpu=context.require_gpus().gpu.name,
            have=capability[0] + capability[1] / 10,
        ),
        context.place("quantization", "moe-backend"),
    )


def _minimum(context: CommandContext, method: str) -> int:
    """The capability that the method needs here (75 for 7.5), 0 where none is known."""
    needed = least_capability(method, context.version, asked=context.command.get("quantization") is not None)
    if method == "fp8" and context.command.get("moe-backend") == "triton" and context.at_least(TRITON_FP8_SINCE):
        return max(needed, TRITON_FP8)
    return needed


RULE = Rule(
    code="CMD203",
    name="quantisation-beyond-compute-capability",
    severity=Severity.ERROR,
    summary=msg("The quantisation method needs a newer GPU.", zh="显卡的计算能力不支持该量化方法。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/vllm.py",
        "https://github.com/vllm-project/vllm/tree/v0.33.0/vllm/model_executor/layers/quantization",
    ),
    bad=(
        Example("vllm serve m --quantization awq\n", at="awq", vllm="0.26.0", gpu="V100"),
        Example("vllm serve m\n", at="m", vllm="0.4.3", gpu="A10", model="moe-fp8"),
        Example("vllm serve m --moe-backend triton\n", at="triton", vllm="0.26.0", gpu="A10", model="moe-fp8"),
    ),
    good=(
        Example("vllm serve m --quantization awq\n", vllm="0.26.0", gpu="T4"),
        Example("vllm serve m\n", vllm="0.26.0", gpu="A10", model="moe-fp8"),
    ),
)
