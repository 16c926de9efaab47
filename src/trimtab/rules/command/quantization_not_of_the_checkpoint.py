"""--quantization names another method than the checkpoint has.

What it does: compares --quantization with the method in the checkpoint's config and the kernels that vLLM puts in its
    place (awq_marlin for awq, gptq_marlin and others for gptq, humming for any). Of a model that the catalogue knows
    as not quantised, awq and gptq need files that it does not have.
Why it matters: vLLM stops: "Quantization method specified in the model config does not match the quantization method
    specified in the `quantization` argument", or "Cannot find the config file for awq".
How to fix: leave the flag out; vLLM takes the method from the checkpoint. To quantise a model while it loads: fp8 or
    bitsandbytes.
When to ignore: never; the check is vLLM's own.
Sources: vllm/config/model.py (_verify_quantization), vLLM 0.26 and 0.33; vllm/config.py, 0.4.2 to 0.8.5;
    get_quant_config in vllm/model_executor/model_loader/weight_utils.py, 0.4.3 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import Found, find_model
from trimtab.messages import Message, msg
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


PACKED = frozenset({"awq", "awq_marlin", "gptq", "gptq_marlin"})
"""Methods that need a checkpoint packed so, and its settings beside it."""

UNTOLD = frozenset({"compressed-tensors"})
"""What a name does not tell: an id that ends in AWQ may hold compressed tensors, one in int4 other methods' weights."""
DYNAMIC = re.compile(r"fp8-dynamic$", re.IGNORECASE)
"""llm-compressor's own ending: compressed tensors."""


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("quantization")
    if use is None or use.value not in JUDGED or context.command.last("hf-overrides"):
        return
    quantisation = context.require_config().quantisation
    catalogued = _catalogued(context)
    if quantisation is None:
        if use.value in PACKED and _plain(context, catalogued):
            yield _finding(context, use, msg("not quantised", zh="未量化的"))
        return
    legal = SAME.get(quantisation.method)
    if legal is None or use.value in legal:
        return
    guessed = catalogued is not None and catalogued.variant and not DYNAMIC.search(_named(context))
    if guessed and UNTOLD & {use.value, quantisation.method}:
        return
    yield _finding(context, use, msg("quantised with {method}", zh="用 {method} 量化的", method=quantisation.method))


def _finding(context: CommandContext, use: FlagUse, own: Message) -> Finding:
    return Finding(
        msg(
            "the checkpoint is {own}; --quantization {asked} does not suit it",
            zh="模型是{own}；--quantization {asked} 不适用",
            own=own,
            asked=use.value,
        ),
        use.value_span or use.span,
        context.remove(use, Grade.UNSAFE),
    )


def _catalogued(context: CommandContext) -> Found | None:
    """What the catalogue has under the command's model."""
    try:
        return find_model(_named(context))
    except ModelError:
        return None


def _plain(context: CommandContext, found: Found | None) -> bool:
    """Whether the model is one of the catalogue's own ids, organisation included, so that its files are known."""
    return found is not None and not found.tune and found.id.lower() == _named(context).lower()


def _named(context: CommandContext) -> str:
    """The model's id or path as the command has it."""
    return context.command.get("model") or (context.command.model.text if context.command.model else "")


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
        Example(
            "vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ --quantization gptq\n",
            at="gptq",
            fixed="vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ\n",
            model="Qwen/Qwen2.5-32B-Instruct-AWQ",
        ),
        Example(
            "vllm serve RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic --quantization fp8\n",
            at="fp8",
            fixed="vllm serve RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic\n",
            model="RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic",
        ),
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --quantization awq\n",
            at="awq",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct\n",
            model="Qwen/Qwen2.5-7B-Instruct",
        ),
    ),
    good=(
        Example("vllm serve org/dense-packed --quantization awq_marlin\n", model="dense-awq"),
        Example("vllm serve org/dense --quantization fp8\n", model="qwen2.5-7b"),
        Example("vllm serve org/dense --quantization awq\n", model="qwen2.5-7b"),
        Example(
            "vllm serve x/Qwen2.5-32B-Instruct-AWQ --quantization compressed-tensors\n",
            model="Qwen/Qwen2.5-32B-Instruct-AWQ",
        ),
    ),
)
