"""The card has no bfloat16, which the model's config asks for.

What it does: reads card and capability from vLLM's check.
Why it matters: --dtype auto takes the config's type; cards before Ampere (capability 8.0) have float16 only.
How to fix: give --dtype half. Models whose activations leave float16's range need another card.
When to ignore: never; the server did not start.
Sources: vllm/platforms/cuda.py (check_if_supports_dtype), vLLM 0.26; vllm/worker/worker.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"(?P<type>[Bb]float16|[Ff]loat16|FP8) is (?:only|not) supported on (?:GPUs|.*devices?) with compute "
        r"capability (?:of )?at least (?P<least>[\d.]+?)\.(?: Your (?P<card>.+?) GPU)?(?: \S+ compute "
        r"capability (?P<has>\d\.\d))?",
        r"Bfloat16 is (?:only|not) supported",
    )
    if hit is None:
        yield from _without_operator(context)
        return
    told = hit.match.groupdict()
    low = context.first(r"compute capability below \d")
    yield context.finding(
        hit,
        msg(
            "{card} (compute capability {has}) has no bfloat16; give --dtype half",
            zh="{card}（计算能力 {has}）不支持 bfloat16；请设 --dtype half",
            card=told.get("card") or msg("the card", zh="该显卡"),
            has=told.get("has") or "< 8.0",
        ),
        LIKELY if low else SURE,
        fix=set_flag(context, "dtype", "half"),
    )


def _without_operator(context: LogContext) -> Iterator[Finding]:
    """torch has the operator, but not for this format on this device: float16 on processors above all."""
    hit = context.first(OPERATOR)
    if hit is not None:
        message = msg(
            "{operator} does not work on {type} on this device: give another --dtype "
            "(on a processor bfloat16 or float)",
            zh="{operator} 在此设备上不支持 {type}：请换用其他 --dtype（CPU 上用 bfloat16 或 float）",
            operator=hit["operator"],
            type=hit["type"],
        )
        yield context.finding(hit, message, LIKELY)


OPERATOR = r"\"(?P<operator>\w+)\" not implemented for '(?P<type>Half|BFloat16|Float8\w*)'"


RULE = Rule(
    code="LOG111",
    name="bfloat16-not-on-this-card",
    severity=Severity.ERROR,
    summary=msg(
        "The card has no bfloat16, which the model's config asks for.", zh="显卡不支持模型配置要求的 bfloat16。"
    ),
    check=check,
    cause=Cause.DTYPE_NOT_ON_GPU,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/platforms/cuda.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.6.6\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
            "Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly "
            "setting the`dtype` flag in CLI, for example: --dtype=half.\n",
            at="line 3: ValueError: Bfloat16",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --dtype half",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
