"""--load-format does not go with the quantisation, the files or their place.

What it does: looks for the loader's refusals of a load format or of keys given to it.
Why it matters: each format has a loader of its own, which reads certain files only; bitsandbytes needed flag and
    format together up to 0.8.
How to fix: leave --load-format out (auto), or give the pair that the message names.
When to ignore: never; the loader refused.
Sources: vllm/engine/arg_utils.py, vLLM 0.4 to 0.8; vllm/model_executor/model_loader, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"only supports? 'bitsandbytes' (?:load format|quantization)",
    r"Unknown load_format|Load format `[^`]*` is not supported|load format '[^']*' is not supported",
    r"Unexpected extra config keys for load format",
    r"Model loader extra config is not supported for load format",
    r"To load a model from (?:S3|object storage)",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg("the load format does not fit: {said}", zh="加载格式不符：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG210",
    name="load-format-mismatch",
    severity=Severity.ERROR,
    summary=msg(
        "--load-format does not go with the quantisation, the files or their place.",
        zh="--load-format 与量化方式、文件或其位置不符。",
    ),
    check=check,
    cause=Cause.QUANT_FORMAT_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/model_loader/__init__.py",),
    bad=(
        Example(
            "ValueError: BitsAndBytes quantization and QLoRA adapter only support 'bitsandbytes' load "
            "format, but got auto\n"
        ),
        Example("ValueError: Unexpected extra config keys for load format auto: dict_keys(['x'])\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [loader.py:1] load_format=auto\n"),),
)
