"""This hybrid model caches prefixes in large blocks: shorter prompts never hit.

What it does: reads the block size that vLLM chose for a model with state layers.
Why it matters: the block of attention must be as large as the state of a layer, hundreds of tokens or more; only
    whole blocks are found again, so that a prompt shorter than one block is computed anew each time.
How to fix: nothing is broken: judge prefix caching by prompts of several blocks; put what all prompts share first,
    and make it longer than a block.
When to ignore: when prompts are long, or prefix caching is off.
Sources: vllm/model_executor/models/config.py and vllm/platforms/interface.py (hybrid models), vLLM 0.10 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (r"[Ss]etting attention block size to (?P<size>\d+) tokens",)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS, kinds=EVERYWHERE)
    if hit is None or context.facts.args.get("enable_prefix_caching") is False:
        return
    message = msg(
        "prefixes are cached in blocks of {size} tokens: a prompt that shares fewer never hits",
        zh="前缀以 {size} 个 token 的块缓存：共享少于一块的提示永远不会命中",
        size=hit["size"],
    )
    yield context.finding(hit, message, LIKELY)


RULE = Rule(
    code="LOG515",
    name="prefix-cache-in-large-blocks",
    severity=Severity.INFO,
    summary=msg(
        "This hybrid model caches prefixes in large blocks: shorter prompts never hit.",
        zh="该混合模型以大块缓存前缀：较短的提示永远不会命中。",
    ),
    check=check,
    cause=Cause.PREFIX_CACHE_WITHOUT_HITS,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/config.py",),
    bad=(
        Example(
            "INFO 11-30 03:43:16 [config.py:1] Setting attention block size to 528 tokens to ensure that "
            "attention page size is >= mamba page size.\n"
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': "
            "'/models/m', 'enable_prefix_caching': False}\n"
            "INFO 11-30 03:43:16 [config.py:1] Setting attention block size to 528 tokens to ensure that "
            "attention page size is >= mamba page size.\n"
        ),
    ),
)
