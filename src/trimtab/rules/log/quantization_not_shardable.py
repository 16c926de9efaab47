"""This quantisation cannot be split over ranks in this vLLM.

What it does: looks for the refusal of pre-quantised bitsandbytes weights under tensor parallelism, in all wordings.
Why it matters: weights quantised beforehand carry statistics that belong to the whole tensor; this loader cannot cut
    them.
How to fix: --tensor-parallel-size 1 with --pipeline-parallel-size in its place, or the unquantised weights quantised
    at load time.
When to ignore: never; the loader refused.
Sources: vllm/model_executor/model_loader/bitsandbytes_loader.py and loader.py, vLLM 0.5 to 0.27.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Prequant BitsAndBytes\b",
    r"Bit(?:s)?AndBytes quantization with TP or PP is not supported",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is not None:
        ranks = context.facts.args.get("tensor_parallel_size") or context.facts.engine.get("tensor_parallel_size")
        message = msg(
            "weights that are quantised already cannot be split over {ranks} tensor-parallel ranks: {said}",
            zh="已量化的权重不能切分到 {ranks} 个张量并行进程：{said}",
            ranks=ranks or "?",
            said=words.said(hit),
        )
        yield context.finding(hit, message, SURE, fix=set_flag(context, "tensor-parallel-size", "1"))


RULE = Rule(
    code="LOG211",
    name="quantization-not-shardable",
    severity=Severity.ERROR,
    summary=msg(
        "This quantisation cannot be split over ranks in this vLLM.", zh="此 vLLM 不能把这种量化权重切分到多个进程。"
    ),
    check=check,
    cause=Cause.QUANT_NOT_SHARDABLE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/model_executor/model_loader/loader.py",),
    bad=(
        Example(
            "ValueError: Prequant BitsAndBytes models with tensor parallelism is not supported. Please try "
            "with pipeline parallelism.\n"
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [loader.py:1] Loading weights with BitsAndBytes quantization. May take a while ...\n"
        ),
    ),
)
