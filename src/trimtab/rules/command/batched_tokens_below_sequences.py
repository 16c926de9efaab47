"""A batch has fewer tokens than sequences.

What it does: compares --max-num-batched-tokens with --max-num-seqs, or with its default up to vLLM 0.7.
Why it matters: vLLM refuses to start, since each running sequence needs at least one token of a batch.
How to fix: raise --max-num-batched-tokens, or lower --max-num-seqs.
When to ignore: never; the check is vLLM's own and stops the start.
Sources: vllm/config/scheduler.py, vLLM 0.11 to 0.33; vllm/config.py (SchedulerConfig._verify_args), vLLM 0.4 to 0.9.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

# EngineArgs.max_num_seqs up to vLLM 0.7; newer ones choose by the card, and never more than the tokens of a batch.
DEFAULT_SEQUENCES = 256


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("max-num-batched-tokens")
    tokens = context.integer("max-num-batched-tokens")
    if use is None or tokens is None or not words.serves(context):
        return
    default = None if context.at_least("0.8") else DEFAULT_SEQUENCES
    sequences = context.integer("max-num-seqs", default)
    if sequences is None or tokens >= sequences:
        return
    yield Finding(
        msg(
            "{tokens} tokens a batch are fewer than {sequences} sequences",
            zh="每批 {tokens} 个 token 少于 {sequences} 个序列",
            tokens=tokens,
            sequences=sequences,
        ),
        use.value_span or use.span,
        context.set_value(use, str(sequences), Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD018",
    name="batched-tokens-below-sequences",
    severity=Severity.ERROR,
    summary=msg("A batch has fewer tokens than sequences.", zh="每批的 token 数少于序列数。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/scheduler.py",
        "https://github.com/vllm-project/vllm/blob/v0.4.2/vllm/config.py",
    ),
    bad=(
        Example(
            "vllm serve m --max-num-batched-tokens 128 --max-num-seqs 256\n",
            at="128",
            fixed="vllm serve m --max-num-batched-tokens 256 --max-num-seqs 256\n",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --max-num-batched-tokens 128\n",
            at="128",
            fixed="vllm serve m --max-num-batched-tokens 256\n",
            vllm="0.6",
        ),
    ),
    good=(Example("vllm serve m --max-num-batched-tokens 128\n", vllm="0.26"),),
)
