"""One image, video or sound is longer than the encoder's cache.

What it does: reads the item's length and the cache's size from the refusal.
Why it matters: the cache is made for the largest item that the model's processor announces; unusual shapes come out
    longer.
How to fix: raise --max-num-batched-tokens to at least the length named (the cache is no smaller than it), or make the
    client's items smaller; for images give mm_processor_kwargs max_pixels.
When to ignore: when the client may be told to send smaller items.
Sources: vllm/v1/engine/input_processor.py and vllm/multimodal/encoder_budget.py, vLLM 0.9 to 0.33.
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
    (
        r"(?P<what>\w+) item with length (?P<length>\d+), which exceeds the pre-allocated encoder cache size "
        r"(?P<size>\d+)"
    ),
    r"exceeds the pre-allocated encoder cache size (?P<size>\d+)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    length = words.group(hit, "length")
    if length:
        message = msg(
            "one {what} takes {length} tokens, and the encoder's cache holds {size}",
            zh="一个 {what} 占 {length} 个 token，而编码器缓存只有 {size}",
            what=hit["what"],
            length=length,
            size=hit["size"],
        )
    else:
        message = msg(
            "one item is longer than the encoder's cache of {size} tokens",
            zh="单个输入超出编码器缓存的 {size} 个 token",
            size=hit["size"],
        )
    fix = set_flag(context, "max-num-batched-tokens", length) if length else None
    yield context.finding(hit, message, SURE, fix=fix, severity=words.by_request(context))


RULE = Rule(
    code="LOG510",
    name="item-larger-than-encoder-cache",
    severity=Severity.ERROR,
    summary=msg(
        "One image, video or sound is longer than the encoder's cache.", zh="单个图像、视频或音频超出编码器缓存。"
    ),
    check=check,
    cause=Cause.ENCODER_CACHE_TOO_SMALL,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/engine/input_processor.py",),
    bad=(
        Example(
            "ValueError: The decoder prompt contains a(n) image item with length 5103, which exceeds the "
            "pre-allocated encoder cache size 2950. Please reduce the input size or increase the encoder "
            "cache size by setting --limit-mm-per-prompt at startup.\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [x.py:1] Encoder cache will be initialized with a budget of 16384 tokens\n"),),
)
