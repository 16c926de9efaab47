"""The chat template that was named does not exist or is no Jinja.

What it does: looks for vLLM's refusal of --chat-template and for Jinja's syntax errors.
Why it matters: a path that does not exist looks like a template of one line; vLLM refuses it at the start, a syntax
    error at the first request.
How to fix: give the file's path as the server sees it (in a container: mounted); render the template once before use.
When to ignore: when the template came with a request.
Sources: vllm/entrypoints/chat_utils.py (load_chat_template, validate_chat_template), vLLM 0.6 to 0.33; jinja2.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"[Tt]he supplied chat template \(?(?:string|path)?.{0,400}?(?:appears path-like|looks like a file path|"
        r"doesn't exist)"
    ),
    r"chat_template is expected to be read|is not a valid chat template type",
    r"(?:FileNotFoundError|No such file or directory).{0,120}\.(?:jinja2?|j2)\b",
    r"TemplateSyntaxError|TemplateAssertionError",
)
HINTS = (
    (r"(?:Unexpected end of template|Encountered unknown tag|expected token '[^']+', got|unexpected " r"'[^']{1,3}')"),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the chat template does not exist or is no Jinja: {said}",
            zh="对话模板不存在或不是有效的 Jinja：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG219",
    name="chat-template-invalid",
    severity=Severity.ERROR,
    summary=msg(
        "The chat template that was named does not exist or is no Jinja.", zh="指定的对话模板不存在或不是有效的 Jinja。"
    ),
    check=check,
    cause=Cause.FLAG_VALUE_INVALID,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/chat_utils.py",),
    bad=(
        Example(
            "ValueError: The supplied chat template string (/models/t.jinja) appears path-like, but doesn't exist!\n"
        ),
        Example("jinja2.exceptions.TemplateSyntaxError: unexpected '}'\n"),
    ),
    good=(
        Example(
            "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...\n"
        ),
    ),
)
