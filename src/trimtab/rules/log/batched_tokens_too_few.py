"""--max-num-batched-tokens is below what one step must hold.

What it does: reads the refusals of a batch smaller than the context without chunked prefill, than the number of
    sequences, or than a hybrid model's block.
Why it matters: without chunked prefill a whole prompt is one step; each running sequence takes one token of it; a
    state model caches in blocks of hundreds of tokens.
How to fix: raise --max-num-batched-tokens to the number that is named, or turn chunked prefill on, or lower the other
    number.
When to ignore: never; the server did not start.
Sources: vllm/config/scheduler.py, vllm/config.py, vllm/config/vllm.py (Mamba cache align mode), vLLM 0.4 to 0.33.
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
    r"max_num_batched_tokens \((?P<batch>\d+)\) is smaller than max_model_len \((?P<least>\d+)\)",
    (r"max_num_batched_tokens \((?P<batch>\d+)\) must be greater than or equal to max_num_seqs " r"\((?P<least>\d+)\)"),
    r"block_size \((?P<least>\d+)\) must be <= max_num_batched_tokens \((?P<batch>\d+)\)",
    r"block_size.{0,40}must be <= max_num_batched_tokens|must be <= max_num_batched_tokens",
    r"does not allow any tokens to be scheduled|does not have enough slots to schedule a token",
    r"max_tokens_per_mm_item \((?P<least>\d+)\) is larger than max_num_batched_tokens \((?P<batch>\d+)\)",
    r"[Cc]onsider increasing max_num_batched_tokens or decreasing num_speculative_tokens",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    least = words.group(hit, "least")
    if least:
        message = msg(
            "--max-num-batched-tokens {batch} is below the {least} that one step must hold: {said}",
            zh="--max-num-batched-tokens {batch} 小于一步所必需的 {least}：{said}",
            batch=hit["batch"],
            least=least,
            said=words.said(hit),
        )
        yield context.finding(hit, message, SURE, fix=set_flag(context, "max-num-batched-tokens", least))
        return
    message = msg(
        "--max-num-batched-tokens is below what one step must hold: {said}",
        zh="--max-num-batched-tokens 小于一步所必需的数量：{said}",
        said=words.said(hit),
    )
    yield context.finding(hit, message, SURE)


RULE = Rule(
    code="LOG105",
    name="batched-tokens-too-few",
    severity=Severity.ERROR,
    summary=msg(
        "--max-num-batched-tokens is below what one step must hold.",
        zh="--max-num-batched-tokens 小于一步所必需的数量。",
    ),
    check=check,
    cause=Cause.BATCHED_TOKENS_TOO_FEW,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/scheduler.py",),
    bad=(
        Example(
            (
                "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': "
                "'/models/m', 'max_num_batched_tokens': 256}\n"
                "ValueError: max_num_batched_tokens (256) is smaller than max_model_len (512). This effectively "
                "limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer "
                "sequences. Please increase max_num_batched_tokens or decrease max_model_len.\n"
            ),
            fixed="vllm serve /models/m --max-num-batched-tokens 512",
        ),
        Example("ValueError: max_num_batched_tokens (16) must be greater than or equal to max_num_seqs (64).\n"),
        Example(
            "AssertionError: In Mamba cache align mode, block_size (2096) must be <= max_num_batched_tokens (2048).\n"
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [scheduler.py:252] Chunked prefill is enabled with max_num_batched_tokens=8192.\n"
        ),
    ),
)
