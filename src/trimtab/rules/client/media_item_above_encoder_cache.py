"""One image or video is longer than the encoder's cache.

What it does: reads the item's length and the cache's size in the refusal.
Why it matters: vLLM sizes the cache at the start for the largest item that it expects; some models' sizes were
    estimated too small.
How to fix: send a smaller image, raise --max-num-batched-tokens, give the real sizes with --limit-mm-per-prompt, or
    update vLLM.
When to ignore: never: the request is not served.
Sources: vllm/v1/engine/input_processor.py and vllm/v1/core/encoder_cache_manager.py, vLLM 0.15 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"item with length (?P<length>\d+),? which exceeds the pre-allocated encoder cache size (?P<size>\d+)",
    r"exceeds the pre-allocated encoder cache size (?P<size>\d+)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "an item of {length} tokens exceeds the encoder's cache of {size}: send a smaller one",
                zh="长 {length} 个 token 的内容超过了编码器缓存 {size}：请发送更小的",
                length=hit["length"] or "?",
                size=hit["size"] or "?",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT055",
    name="media-item-above-encoder-cache",
    severity=Severity.ERROR,
    summary=msg(
        "One image or video is longer than the encoder's cache.",
        zh="一张图片或一段视频超过了编码器缓存。",
    ),
    check=check,
    cause=Cause.ENCODER_CACHE_TOO_SMALL,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/engine/input_processor.py",),
    bad=(
        Example(
            "The decoder prompt contains a(n) image item with length 5000, which exceeds the pre-allocated encoder "
            "cache size 4096.\n",
        ),
    ),
    good=(
        Example(
            "At most 1 image(s) may be provided in one request.\n",
        ),
    ),
)
