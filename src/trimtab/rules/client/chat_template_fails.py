"""The chat template fails on what a message holds.

What it does: reads Jinja's errors, where the order of roles is not what is refused.
Why it matters: templates loop over tool arguments as a mapping where the history holds JSON text, or take content
    for text where it is a list of parts.
How to fix: send the arguments as the template reads them, use a release that decodes them (vLLM's own server does),
    or give another template (--chat-template, --chat-template-content-format).
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/chat_utils.py, vLLM 0.33 (tool call arguments, content format); Jinja's filters (items).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"can only get item pairs from a mapping",
    r"jinja2?\.exceptions\.(?:Undefined|TemplateSyntax|Template(?:Assertion|Runtime)|Security)\w*",
    r"'(?:dict|list|str) object' has no attribute|can only concatenate str|must be str, not",
    r"TemplateSyntaxError|UndefinedError",
)
WEAK = (
    r"jinja.{0,40}(?:error|fail)",
    r"TemplateError",
    r"error (?:in )?(?:applying|rendering) (?:the )?chat template",
    r"chat template .{0,40}(?:fail|error)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the chat template fails on a message's content, most often on tool arguments that are text",
                zh="聊天模板在消息内容上出错，最常见的是工具参数为文本",
            ),
            SURE,
        )
    elif (hit := context.said(*WEAK)) and not context.said(r"at most \d+ \w+\(s\)"):
        yield context.finding(
            hit,
            msg("the chat template fails", zh="聊天模板出错"),
            POSSIBLE,
        )


RULE = Rule(
    code="CLT047",
    name="chat-template-fails",
    severity=Severity.ERROR,
    summary=msg(
        "The chat template fails on what a message holds.",
        zh="聊天模板在处理消息内容时出错。",
    ),
    check=check,
    cause=Cause.TEMPLATE_ERROR,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/chat_utils.py",
        "https://jinja.palletsprojects.com/en/stable/templates/#jinja-filters.items",
    ),
    bad=(
        Example(
            "TypeError: Can only get item pairs from a mapping.\n",
        ),
        Example(
            "jinja2.exceptions.UndefinedError: 'dict object' has no attribute 'content'\n",
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
    ),
)
