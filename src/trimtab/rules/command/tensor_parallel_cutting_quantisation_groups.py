"""A rank's share of a quantised matrix is not a whole number of quantisation groups.

What it does: divides the inputs of row-parallel AWQ, GPTQ and int4 matrices by the tensor-parallel size and compares
    the share with the group size; for block-wise fp8 it compares the shares of dense and expert matrices with the
    block. From vLLM 0.29 on an expert's blocks may be refined down to 32, and only shares below that count.
Why it matters: vLLM raises while it builds the layer ("not aligned with the quantized weight shape", "not divisible
    by weight quantization block_n") and does not start.
How to fix: take a smaller tensor-parallel size, or, where only the experts are cut, --enable-expert-parallel.
When to ignore: when the checkpoint was padded and --model-config names another one.
Sources: vllm/model_executor/layers/quantization/awq.py and gptq.py (create_weights), vLLM 0.6.6; quantization/fp8.py
    of 0.8.5 to 0.28; fused_moe/oracle/fp8.py (refine_fp8_moe_block_shape), vLLM 0.29 and 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.facts import first_cut, heads_allow
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("tensor-parallel-size")
    tp = context.integer("tensor-parallel-size", 1) or 1
    if use is None or tp <= 1:
        return
    model = context.require_decoder()
    if not heads_allow(model, tp):
        return  # the heads' own rules speak
    cut = first_cut(context, model, tp)
    if cut is None:
        return
    legal = [n for n in range(1, tp) if heads_allow(model, n) and first_cut(context, model, n) is None]
    experts_only = cut.experts and not context.command.has("enable-expert-parallel")
    fix = None
    if experts_only:
        fix = context.set_flag("enable-expert-parallel", None)
    elif legal:
        fix = context.set_value(use, str(legal[-1]), Grade.UNSAFE)
    yield Finding(
        msg(
            "at tensor-parallel size {tp} a rank holds {size} of {name}, which is not a multiple of the quantisation "
            "group of {unit}; sizes that are: {legal}",
            zh="张量并行数为 {tp} 时每个 rank 分到 {name} 的 {size}，不是量化分组 {unit} 的整数倍；可用的数：{legal}",
            tp=tp,
            size=cut.size,
            name=cut.weight.name,
            unit=cut.unit,
            legal=", ".join(map(str, legal)) or "-",
        ),
        use.value_span or use.span,
        fix,
    )


RULE = Rule(
    code="CMD103",
    name="tensor-parallel-cutting-quantisation-groups",
    severity=Severity.ERROR,
    summary=msg(
        "A rank's share of a quantised matrix is not a whole number of quantisation groups.",
        zh="按该张量并行数切分后，量化分组不能整除。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/model_executor/layers/quantization/awq.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/layers/quantization/fp8.py",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/model_executor/layers/fused_moe/oracle/fp8.py",
    ),
    bad=(
        Example(
            "vllm serve org/dense-awq --tensor-parallel-size 2\n",
            at="2",
            fixed="vllm serve org/dense-awq --tensor-parallel-size 1\n",
            model="dense-awq",
        ),
        Example(
            "vllm serve org/moe-fp8 --tensor-parallel-size 4\n",
            at="4",
            fixed="vllm serve org/moe-fp8 --tensor-parallel-size 4 --enable-expert-parallel\n",
            vllm="0.26.0",
            model="moe-fp8",
        ),
    ),
    good=(
        Example("vllm serve org/dense-awq --tensor-parallel-size 1\n", model="dense-awq"),
        Example("vllm serve org/moe-fp8 --tensor-parallel-size 4\n", vllm="0.29.0", model="moe-fp8"),
        Example(
            "vllm serve org/moe-fp8 --tensor-parallel-size 4 --enable-expert-parallel\n",
            vllm="0.26.0",
            model="moe-fp8",
        ),
    ),
)
