"""The model has no chat template, so that chat requests are refused.

What it does: looks for the refusal of Transformers and vLLM to make a prompt of messages without a template.
Why it matters: base models and many conversions have none; the server starts, and every request to
    /v1/chat/completions is answered 400.
How to fix: give --chat-template with the file that the model's card or vLLM's examples directory has, or use
    /v1/completions. A template in a file of its own (chat_template.jinja) must lie beside the tokenizer.
When to ignore: when only /v1/completions is used.
Sources: vllm/entrypoints/chat_utils.py and vllm/renderers, vLLM 0.5 to 0.33; transformers/tokenization_utils_base.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"default chat template is no longer allowed",
    r"tokenizer\.chat_template is not set",
    r"[Cc]annot (?:use|apply) chat[_ ]template.{0,80}(?:not set|no (?:chat )?template)",
    r"(?:[Nn]o|without a) chat template (?:is |was )?(?:defined|found|provided|set|available)",
    r"does not (?:have|define|provide) a chat template",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg("the model has no chat template: {said}", zh="模型没有对话模板：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG218",
    name="chat-template-missing",
    severity=Severity.ERROR,
    summary=msg(
        "The model has no chat template, so that chat requests are refused.",
        zh="模型没有对话模板，因此对话请求被拒绝。",
    ),
    check=check,
    cause=Cause.CHAT_TEMPLATE_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/chat_utils.py",),
    bad=(
        Example(
            "ValueError: As of transformers v4.44, default chat template is no longer allowed, so you must "
            "provide a chat template if the tokenizer does not define one.\n"
        ),
        Example(
            "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set and "
            "no template argument was passed!\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [hf.py:1] Detected the chat template content format to be 'string'.\n"),),
)
