"""--quantization is not the checkpoint's, or this vLLM does not know the method.

What it does: looks for vLLM's comparison of the flag with the checkpoint's own quantisation, and for methods that it
    has not.
Why it matters: the weights are packed in one way; another method cannot read them. Methods come and go with versions.
How to fix: leave --quantization out where the checkpoint is quantised: vLLM reads the method from its config. For a
    method that is gone, use the older vLLM or other weights.
When to ignore: never; the method was refused.
Sources: vllm/config/model.py (_verify_quantization), vllm/config.py, vLLM 0.4 to 0.33; model_loader/weight_utils.py
    (get_quant_config).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, SURE, LogContext
from trimtab.rules.log.fixes import remove_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"No \S+ compatible scheme (?:was )?found",
    (
        r"[Uu]nsupported (?:FP8|FP4|MXFP\d|NVFP4|quantization|quant|Marlin|OCP MX)\b.{0,40}(?:scheme|strategy|"
        r"combination|algo)"
    ),
    (
        r"Quantization method specified in the model config \((?P<own>[^)]*)\) does not match the quantization "
        r"method specified in the `quantization` argument \((?P<given>[^)]*)\)"
    ),
    r"Unknown quantization method: (?P<given>\w+)",
    r"Found unknown quantization='?(?P<given>\w+)'?",
    r"Cannot find the config file for (?P<given>\w+)",
    r"The quantization method (?P<given>\S+) is deprecated",
    r"Invalid quantization method: (?P<given>\S+)",
    r"Currently, only \S+ weight quantization (?:is|are) supported for (?P<given>[\w ]+)",
    (
        r"(?P<given>\w+) (?:quantization )?(?:only )?(?:does not )?supports? (?:weight_bits|weight bits|"
        r"group_size|is_sym|quant_type)"
    ),
    r"^AssertionError: assert (?:\w+\.)*quant_(?:method|config) is not None",
    r"Unsupported quantization config: (?P<given>.+)|Unsupported (?:weight_)?num_bits",
    r"(?P<given>\w+) quantization is currently not supported in \w+",
    r"(?P<given>\w+) quantization .{0,40}not supported on \w+ (?:platform|backend)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        yield from _guessed(context)
        return
    own, given = words.group(hit, "own"), words.group(hit, "given")
    if own:
        message = msg(
            "--quantization {given} does not match the checkpoint, which is quantised with {own}",
            zh="--quantization {given} 与权重不符，权重的量化方法是 {own}",
            given=given,
            own=own,
        )
        yield context.finding(hit, message, SURE, fix=remove_flag(context, "quantization"))
        return
    message = msg(
        "the checkpoint or this vLLM does not do quantization {given} ({said})",
        zh="权重或此 vLLM 不支持量化方法 {given}（{said}）",
        given=given,
        said=words.said(hit),
    )
    yield context.finding(hit, message, SURE)


def _guessed(context: LogContext) -> Iterator[Finding]:
    hit = None if context.facts.served else words.guessed(context, OF_QUANTISATION, QUANTISATION)
    if hit is not None and "apability" not in hit.entry.text:
        message = msg(
            "probably this vLLM does not do the checkpoint's quantisation in this form: its code for quantised "
            "layers raised {said}",
            zh="可能是此 vLLM 不支持该权重的这种量化形式：量化层代码报错 {said}",
            said=words.quoted(hit),
        )
        yield context.finding(hit, message, HUNCH)


OF_QUANTISATION = (
    r"(?i:quantiz|quantis|\bnvfp4|\bmxfp\d|\bfp8\b|\bgptq|\bawq|marlin|compressed.tensors|modelopt|\bquark\b|\bhqq\b"
    r"|bitblas|weight_scale|group_size|num_bits|\bw\da\d+)"
)
QUANTISATION = r"layers[/\\]quantization[/\\]"


RULE = Rule(
    code="LOG209",
    name="quantization-method-mismatch",
    severity=Severity.ERROR,
    summary=msg(
        "--quantization is not the checkpoint's, or this vLLM does not know the method.",
        zh="--quantization 与权重不符，或此 vLLM 不认识该方法。",
    ),
    check=check,
    cause=Cause.QUANT_FORMAT_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            (
                "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': "
                "'/models/m', 'quantization': 'awq'}\n"
                "ValueError: Quantization method specified in the model config (gptq) does not match the "
                "quantization method specified in the `quantization` argument (awq).\n"
            ),
            fixed="vllm serve /models/m",
        ),
        Example("ValueError: Cannot find the config file for awq\n"),
        Example("ValueError: Unknown quantization method: magic. Must be one of ['awq', 'fp8'].\n"),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [config.py:1] awq quantization is not fully optimized yet. The speed can "
            "be slower than non-quantized models.\n"
        ),
    ),
)
