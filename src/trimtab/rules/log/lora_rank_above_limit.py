"""The adapter's rank is above --max-lora-rank.

What it does: reads rank and limit from the refusal.
Why it matters: buffers are made for the largest rank that is allowed, 16 by default.
How to fix: give --max-lora-rank the adapter's rank, rounded up to a size that vLLM has (8, 16, 32, 64, 128, 256, 320,
    512).
When to ignore: never; the adapter was refused.
Sources: vllm/lora/peft_helper.py (validate_legal) and worker_manager.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank (?P<limit>\d+)",)


RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    rank = int(hit["rank"])
    size = next((r for r in RANKS if r >= rank), None)
    message = msg(
        "the adapter has rank {rank}, and --max-lora-rank allows {limit}",
        zh="适配器的秩为 {rank}，而 --max-lora-rank 只允许 {limit}",
        rank=rank,
        limit=hit["limit"],
    )
    other = "Adapter bias" in hit.entry.text  # which no rank mends
    fix = set_flag(context, "max-lora-rank", str(size)) if size and not other else None
    yield context.finding(hit, message, SURE, fix=fix, severity=words.by_request(context))


RULE = Rule(
    code="LOG503",
    name="lora-rank-above-limit",
    severity=Severity.ERROR,
    summary=msg("The adapter's rank is above --max-lora-rank.", zh="LoRA 适配器的秩高于 --max-lora-rank。"),
    check=check,
    cause=Cause.LORA_RANK_TOO_HIGH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/lora/peft_helper.py",),
    bad=(
        Example(
            (
                "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': "
                "'/models/m', 'enable_lora': True}\nValueError: LoRA rank 48 is greater than max_lora_rank 16.\n"
            ),
            fixed="vllm serve /models/m --enable-lora --max-lora-rank 64",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [x.py:1] max_lora_rank=64\n"),),
)
