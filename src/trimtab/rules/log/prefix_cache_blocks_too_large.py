"""A hybrid model's prefix cache works in blocks of hundreds of tokens: shorter prompts never hit.

What it does: reads the block size that vLLM sets for a model that mixes attention and state-space layers.
Why it matters: The prefix cache keeps whole blocks only. A shared prefix that is shorter than one block is computed
    anew every time.
How to fix: nothing, where shared prefixes are longer than the block; else put what is shared first and make it long,
    or do without the cache.
When to ignore: where --no-enable-prefix-caching is given, or prompts are long.
Sources: vllm/platforms/interface.py and vllm/model_executor/models/config.py, vLLM 0.11 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

LARGE = 128
"""Tokens of a block above which ordinary prompts fall short of one."""


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(r"Setting attention block size to (?P<tokens>\d+) tokens to ensure", kinds=EVERYWHERE)
    if hit is None or hit.number("tokens") < LARGE or context.facts.args.get("enable_prefix_caching") is False:
        return
    yield context.finding(
        hit,
        msg(
            "the prefix cache works in blocks of {tokens} tokens: shared prefixes that are shorter never hit",
            zh="前缀缓存以 {tokens} 个 token 为一块：更短的公共前缀无法命中",
            tokens=hit["tokens"],
        ),
        POSSIBLE,
    )


RULE = Rule(
    code="LOG165",
    name="prefix-cache-blocks-too-large",
    severity=Severity.INFO,
    summary=msg(
        "A hybrid model's prefix cache works in blocks of hundreds of tokens: shorter prompts never hit.",
        zh="混合模型的前缀缓存以数百 token 为一块，较短的提示无法命中。",
    ),
    check=check,
    cause=Cause.PREFIX_CACHE_WITHOUT_HITS,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/config.py",),
    bad=(
        Example(
            "INFO 11-30 03:43:16 [interface.py:1] Setting attention block size to 672 tokens to ensure "
            "that attention page size is >= mamba page size.\n",
            at="line 1: Setting attention block size",
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [interface.py:1] Setting attention block size to 16 tokens to ensure "
            "that attention page size is >= mamba page size.\n"
        ),
    ),
)
