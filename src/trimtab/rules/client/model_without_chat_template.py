"""The model has no chat template.

What it does: reads the refusal of Transformers and vLLM to build a prompt from messages.
Why it matters: base models and some files (GGUF, Python-coded formats) bring none; Transformers 4.44 and later
    makes none up.
How to fix: give the model's own template with --chat-template FILE (or its --tokenizer-mode), use /v1/completions,
    or serve the instruct model.
When to ignore: never for chat; completions work.
Sources: transformers tokenization_utils_base.py (get_chat_template); vllm/renderers/hf.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"default chat template is no longer allowed|provide a chat template",
    r"chat_template is not set|no chat template (?:provided|available|found|defined)|does not (?:have|define) a "
    r"chat template",
    r"does not have a default chat template",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the model has no chat template: give --chat-template FILE, or use /v1/completions",
                zh="模型没有聊天模板：请给出 --chat-template FILE，或使用 /v1/completions",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT054",
    name="model-without-chat-template",
    severity=Severity.ERROR,
    summary=msg(
        "The model has no chat template.",
        zh="模型没有聊天模板。",
    ),
    check=check,
    cause=Cause.CHAT_TEMPLATE_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/renderers/hf.py",),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'As of transformers v4.44, default chat "
            "template is no longer allowed, so you must provide a chat template if the tokenizer does not define "
            "one.'}\n",
        ),
        Example(
            "Cannot use chat template functions because tokenizer.chat_template is not set\n",
        ),
    ),
    good=(
        Example(
            "jinja2.exceptions.TemplateError: System message must be at the beginning.\n",
        ),
    ),
)
