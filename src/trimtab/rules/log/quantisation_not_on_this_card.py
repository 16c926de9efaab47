"""The card lacks what this quantisation's kernels need.

What it does: reads method and capabilities from vLLM's checks, and recognises Triton's and PyTorch's refusals of FP8.
Why it matters: AWQ needs 7.5, Marlin 8.0 (7.5 in newer versions), FP8 arithmetic 8.9; the limits differ by version of
    vLLM.
How to fix: take weights in another form (GPTQ on Volta; on Ampere FP8 weights run through Marlin unless another back
    end is forced), or a newer vLLM, whose limit may be lower.
When to ignore: never; the server did not start.
Sources: vllm/config/vllm.py (_get_quantization_config), vLLM 0.26; vllm/config.py, vLLM 0.6.6; Triton's type check.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"quantization method (?P<method>\S+) is not supported for the current GPU\. *Minimum capability: "
        r"(?P<least>\d+)\. *Current capability: (?P<has>\d+)",
        r"(?P<method>Quantization scheme) is not supported for [', ]*the current GPU\. *(?:Min|Required) "
        r"capability: (?P<least>\d+)[.', ]*Current capability: (?P<has>\d+)",
        r"does not support (?P<method>NVFP4|MXFP\d|FP\d) quantization|[Pp]lease use (?:Blackwell|Hopper) GPUs",
        r"(?P<method>\w+) quantized models? (?:is|are) only supported on GPUs?",
        r"type (?P<method>fp8\w+) not supported in this architecture",
        r"_scaled_mm.*only supported on|FP8 (?:computation|linear|Marlin)?.*requires? (?:compute "
        r")?capability|requires? compute capability (?:of )?(?:>= ?)?\d.*(?i:fp8|fp4|marlin|machete|cutlass)",
        r"(?P<method>MXFP\d|NVFP4|FP\d|INT\d) (?:quantization|weight\b.{0,40}) is not supported",
        r"Unsupported kernel config for moe|device_gemm with the specified compilation parameters does not support",
        r"^KeyError: '(?P<method>float[48]_\w+)'",
        r"No (?P<method>(?!Unquantized)\w+(?: Int8)?) MoE backend supports|No compiled (?P<kernel>\w+) for",
        r"marlin kernel with fp8 activation is not built|Int8 not supported on SM|fp8 out scale unsupported for|"
        r"[Uu]nknown recipe|Unsupported architecture(?: or| for)|"
        r"Marlin does not support \w+ = |moe_permute\w* is not supported on|^\w*Error: Error Internal$",
        r"Failed to find a kernel that can implement the|No compatible .*(?:quant|linear|MoE).* "
        r"kernel|(?i:marlin).*(?:not supported|requires).*capability",
    )
    if hit is None and (place := context.framed(PLACE)) is not None and context.failed and words.unnamed(place):
        yield context.finding(place, GUESS, HUNCH)
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "the card's compute capability {has} does not run {method}{least}; take weights in another form",
            zh="显卡（计算能力 {has}）无法运行 {method}{least}；请换用其他形式的权重",
            has=told.get("has") or "",
            method=told.get("method") or msg("this quantisation", zh="该量化方法"),
            least=msg(" (needs {n})", zh="（需要 {n}）", n=told["least"]) if told.get("least") else "",
        ),
        SURE if told.get("least") or told.get("method") else LIKELY,
    )


PLACE = r"layers/quantization/\S+\.py|kernels/linear/\S+\.py|layers/fused_moe/\S+\.py|aiter/fused_moe"
GUESS = msg(
    "it failed in the code of the quantised layers, so their kernels on this card are the likeliest cause, and no more "
    "than that is known: try another form of the weights",
    zh="错误发生在量化层的代码中，最可能的原因是该显卡上的量化内核，除此之外无法确定：请尝试其他形式的权重",
)


RULE = Rule(
    code="LOG112",
    name="quantisation-not-on-this-card",
    severity=Severity.ERROR,
    summary=msg("The card lacks what this quantisation's kernels need.", zh="显卡不满足该量化方法内核的要求。"),
    check=check,
    cause=Cause.QUANT_CAPABILITY_TOO_LOW,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/vllm.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/config.py",
    ),
    bad=(
        Example(
            "ValueError: The quantization method awq is not supported for the current GPU. Minimum "
            "capability: 75. Current capability: 70.\n",
            at="line 1: ValueError: The quantization method",
        ),
        Example(
            "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are "
            "('fp8e4b15', 'fp8e5')\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
