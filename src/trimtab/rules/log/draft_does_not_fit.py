"""The draft model does not fit the model it drafts for.

What it does: reads vLLM's comparison of draft and target: vocabulary, tokens, ranks, lengths, widths.
Why it matters: draft and target must speak of the same tokens, and a draft trained for a number of tokens does that
    number.
How to fix: take the draft published for exactly this model; give num_speculative_tokens as its card says; leave
    draft_tensor_parallel_size out.
When to ignore: never; the start ended.
Sources: vllm/config/speculative.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"vocab_sizes\[0\] == vocab_size for",
    r"[Tt]arget and draft model should have the same (?P<what>\w+ ?\w*)",
    (
        r"(?:supports a maximum of|must be divisible by) ?`?n(?:um_speculative_tokens|_predict)|"
        r"num_speculative_tokens\S* must be divisible by n_predict"
    ),
    r"speculative_draft_tensor_parallel_size|draft_tensor_parallel_size.{0,60}(?:cannot|must)",
    r"(?:speculative|draft)_max_model_len.{0,60}cannot be larger",
    r"'tensor_parallel_size' is not a valid argument in the speculative_config",
    (
        r"[Dd]raft (?:model )?.{0,40}(?:vocab|hidden|head)\w*.{0,24}(?:match|same|equal)|requires "
        r"num_speculative_tokens|[Dd]raft (?:model )?\w*(?:vocab|hidden)_?\w* must (?:match|be)|does not contain "
        r"MTP weights"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    confidence = SURE
    if hit is None:
        draft = words.draft_of(context)
        hit = context.first(re.escape(draft), kinds=(EntryKind.EXCEPTION, EntryKind.ERROR)) if draft else None
        if hit is None:
            hit, confidence = words.guessed(context, DRAFTED, DRAFT), HUNCH
        if hit is None:
            return
    message = msg("draft and target do not fit: {said}", zh="草稿模型与目标模型不匹配：{said}", said=words.said(hit))
    yield context.finding(hit, message, confidence)


DRAFTED = r"num_speculative_tokens (?:was|were) provided|both speculative_model and num_speculative_tokens"
DRAFT = r"models[/\\]\w*(?:eagle|mtp|medusa)\w*\.py"


RULE = Rule(
    code="LOG507",
    name="draft-does-not-fit",
    severity=Severity.ERROR,
    summary=msg("The draft model does not fit the model it drafts for.", zh="草稿模型与目标模型不匹配。"),
    check=check,
    cause=Cause.SPECULATIVE_DRAFT_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/speculative.py",),
    bad=(
        Example(
            "ValueError: Target and draft model should have the same vocabulary size. Target model "
            "vocab_size=49152. Draft model vocab_size=1000. Using models with different tokenizers can cause "
            "out-of-bounds errors during speculative decoding.\n"
        ),
        Example("ValueError: num_speculative_tokens:4 must be divisible by n_predict=3\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [core.py:1] speculative_config=None\n"),),
)
