"""Prefix caching of a hybrid model finds nothing in requests as short as --max-model-len allows.

What it does: works out a hybrid's attention block and says when no more than one whole block fits into
    --max-model-len while prefix caching is asked for.
Why it matters: prefixes are found again by whole blocks only; a hybrid's block has hundreds of tokens, so that shorter
    prefixes are computed anew each time.
How to fix: expect no hits, or serve a longer context.
When to ignore: when the flag is there for other models' sake.
Sources: vllm/platforms/interface.py (hybrid block alignment), vLLM 0.26; vllm/model_executor/models/config.py, 0.17.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("enable-prefix-caching")
    length = context.size("max-model-len")
    if use is None or use.negated or length is None:
        return
    if not any(layer.recurrent for layer in context.require_model().layers):
        return
    case = context.shape
    if case is None:
        return
    block = case.budget().layout.block_size
    if length >= 2 * block:
        return
    yield Finding(
        msg(
            "prefixes are found by whole blocks of {block} tokens; of {length} tokens at most one is whole",
            zh="前缀缓存按 {block} 个 token 的整块命中；{length} 个 token 中最多一整块",
            block=block,
            length=length,
        ),
        use.span,
    )


RULE = Rule(
    code="CMD512",
    name="prefix-shorter-than-hybrid-block",
    severity=Severity.WARNING,
    summary=msg(
        "Prefix caching of a hybrid model finds nothing in requests as short as --max-model-len allows.",
        zh="混合模型的块大于短前缀，前缀缓存不会命中。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/platforms/interface.py",),
    since="0.11",
    bad=(
        Example(
            "vllm serve org/hybrid --enable-prefix-caching --max-model-len 1024\n",
            at="--enable-prefix-caching",
            vllm="0.26.0",
            model="qwen3-next-12layers",
        ),
    ),
    good=(
        Example(
            "vllm serve org/hybrid --enable-prefix-caching --max-model-len 32768\n",
            vllm="0.26.0",
            model="qwen3-next-12layers",
        ),
    ),
)
