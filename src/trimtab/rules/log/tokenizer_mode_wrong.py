"""--tokenizer-mode is not the model's.

What it does: looks for the refusal of a tokenizer mode, and for parts of vLLM that met another kind of tokenizer than
    they can use.
Why it matters: Mistral's own files and DeepSeek's newest need a tokenizer mode of their own; with another one,
    templates, tools and tokens go wrong.
How to fix: leave --tokenizer-mode out; give mistral for checkpoints in Mistral's format (with --config-format mistral
    --load-format mistral), and what the model's card names for others.
When to ignore: never; the mode was refused.
Sources: vllm/transformers_utils/tokenizer.py, vllm/tokenizers/registry.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"'?MistralTokenizer'? object has no attribute",
    r"Unknown tokenizer mode",
    r"No tokenizer registered for tokenizer_mode=",
    r"Cannot use the fast tokenizer in slow tokenizer mode",
    r"must be an instance of MistralTokenizer|Detected a MistralTokenizer tokenizer when using",
    r"mistral_format=True is not supported with tokenizer_mode",
    r"Mistral[Tt]okenizer (?:is )?not supported",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the tokenizer mode is not the model's: {said}", zh="分词器模式与模型不符：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG217",
    name="tokenizer-mode-wrong",
    severity=Severity.ERROR,
    summary=msg("--tokenizer-mode is not the model's.", zh="--tokenizer-mode 不是该模型所用的模式。"),
    check=check,
    cause=Cause.TOKENIZER_UNLOADABLE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/tokenizers/registry.py",),
    bad=(
        Example("ValueError: No tokenizer registered for tokenizer_mode='fancy'.\n"),
        Example("ValueError: Cannot use the fast tokenizer in slow tokenizer mode.\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [core.py:1] Initializing a V1 LLM engine with config: tokenizer_mode=auto\n"),),
)
