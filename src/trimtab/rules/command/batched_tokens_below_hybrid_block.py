"""--max-num-batched-tokens is smaller than a hybrid model's attention block.

What it does: works out the block to which vLLM raises attention so that its page holds a recurrent state, and compares
    it with the batched tokens, given or by default, when prefix caching keeps states aligned to blocks.
Why it matters: vLLM stops with "In Mamba cache align mode, block_size must be <= max_num_batched_tokens".
How to fix: give at least one block of batched tokens, or leave prefix caching off.
When to ignore: never; the check is vLLM's own and stops the start.
Sources: vllm/config/vllm.py (validate_block_size), vLLM 0.17, 0.20 and 0.26; it is gone in 0.27.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, fix_to
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    if not any(layer.recurrent for layer in context.require_model().layers):
        return
    given = context.integer("max-num-batched-tokens") is not None
    unsure = not given and not (context.gpus and context.gpus.memory_known)  # the card decides the default
    case = context.shape if given or unsure else context.memory
    report = case.budget() if case else None
    if report is None or report.settings.mamba_cache_mode != "align":
        return
    block, tokens = report.layout.block_size, report.settings.max_num_batched_tokens
    if block <= tokens:
        return
    enough = next(n for n in (1 << k for k in range(31)) if n >= block)
    said = msg(
        "{tokens} batched tokens are fewer than the {block} of this hybrid's attention block",
        zh="批处理 token 数 {tokens} 小于该混合模型的注意力块大小 {block}",
        tokens=tokens,
        block=block,
    )
    if unsure:
        said = msg(
            "{tokens} batched tokens, the default of most cards, are fewer than the {block} of this hybrid's attention "
            "block",
            zh="多数显卡默认的批处理 token 数 {tokens} 小于该混合模型的注意力块大小 {block}",
            tokens=tokens,
            block=block,
        )
    yield Finding(
        said,
        context.place("max-num-batched-tokens", "enable-prefix-caching"),
        fix_to(context, Remedy("max-num-batched-tokens", enough)),
        severity=Severity.WARNING if unsure else None,
    )


RULE = Rule(
    code="CMD510",
    name="batched-tokens-below-hybrid-block",
    severity=Severity.ERROR,
    summary=msg(
        "--max-num-batched-tokens is smaller than a hybrid model's attention block.",
        zh="--max-num-batched-tokens 小于混合模型的注意力块。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.17.0/vllm/config/vllm.py",),
    since="0.17",
    until="0.26",
    bad=(
        Example(
            "vllm serve org/hybrid --enable-prefix-caching --max-num-batched-tokens 512\n",
            at="512",
            fixed="vllm serve org/hybrid --enable-prefix-caching --max-num-batched-tokens 1024\n",
            vllm="0.26.0",
            gpu="H100-80",
            model="qwen3-next-12layers",
        ),
        Example(
            "vllm serve org/hybrid --enable-prefix-caching --max-num-batched-tokens 512\n",
            at="512",
            fixed="vllm serve org/hybrid --enable-prefix-caching --max-num-batched-tokens 1024\n",
            vllm="0.26.0",
            model="qwen3-next-12layers",
        ),
    ),
    good=(
        Example(
            "vllm serve org/hybrid --enable-prefix-caching --max-num-batched-tokens 2048\n",
            vllm="0.26.0",
            gpu="H100-80",
            model="qwen3-next-12layers",
        ),
    ),
)
