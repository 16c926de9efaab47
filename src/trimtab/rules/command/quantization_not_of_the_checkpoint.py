"""--quantization names another method than the checkpoint has.

What it does: compares --quantization with the method in the checkpoint's config and the kernels that vLLM puts in its
    place (awq_marlin for awq, gptq_marlin and others for gptq, humming for any).
Why it matters: vLLM stops: "Quantization method specified in the model config does not match the quantization method
    specified in the `quantization` argument".
How to fix: leave the flag out; vLLM takes the method from the checkpoint.
When to ignore: never; the check is vLLM's own.
Sources: vllm/config/model.py (_verify_quantization), vLLM 0.26 and 0.33; vllm/config.py, 0.4.2 to 0.8.5.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

SAME = {
    "awq": frozenset({"awq", "awq_marlin", "auto_awq", "moe_wna16", "cpu_awq", "ipex", "inc"}),
    "gptq": frozenset(
        {"gptq", "gptq_marlin", "gptq_marlin_24", "marlin", "auto_gptq", "gptq_bitblas", "bitblas", "moe_wna16",
         "cpu_gptq", "ipex", "inc"}
    ),
    "fp8": frozenset({"fp8", "deepseek_v4_fp8"}),
    "bitsandbytes": frozenset({"bitsandbytes"}),
    "compressed-tensors": frozenset({"compressed-tensors", "compressed_tensors"}),
    "mxfp4": frozenset({"mxfp4", "gpt_oss_mxfp4"}),
}  # fmt: skip
"""A checkpoint's method -> what --quantization may say of it."""
JUDGED = frozenset({"awq", "awq_marlin", "gptq", "gptq_marlin", "fp8", "bitsandbytes", "compressed-tensors", "mxfp4"})


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("quantization")
    if use is None or use.value not in JUDGED or context.command.last("hf-overrides"):
        return
    quantisation = context.require_config().quantisation
    if quantisation is None or _guessed(context):
        return
    legal = SAME.get(quantisation.method)
    if legal is None or use.value in legal:
        return
    yield Finding(
        msg(
            "the checkpoint is quantised with {own}, not {asked}",
            zh="模型的量化方法是 {own}，不是 {asked}",
            own=quantisation.method,
            asked=use.value,
        ),
        use.value_span or use.span,
        context.remove(use, Grade.UNSAFE),
    )


def _guessed(context: CommandContext) -> bool:
    """Whether the method was read off the model's id: an id that ends in AWQ may hold compressed tensors."""
    named = context.command.get("model") or (context.command.model.text if context.command.model else "")
    try:
        return bool(find_model(named).variant)
    except ModelError:
        return False


RULE = Rule(
    code="CMD205",
    name="quantization-not-of-the-checkpoint",
    severity=Severity.ERROR,
    summary=msg(
        "--quantization names another method than the checkpoint has.", zh="--quantization 与模型的量化方法不符。"
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/model.py",),
    bad=(
        Example(
            "vllm serve org/dense-packed --quantization gptq --port 8001\n",
            at="gptq",
            fixed="vllm serve org/dense-packed --port 8001\n",
            model="dense-awq",
        ),
    ),
    good=(
        Example("vllm serve org/dense-packed --quantization awq_marlin\n", model="dense-awq"),
        Example("vllm serve org/dense --quantization fp8\n", model="qwen2.5-7b"),
    ),
)
