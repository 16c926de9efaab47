"""The template refuses the order of roles.

What it does: reads the exceptions of chat templates and of Mistral's validator about order.
Why it matters: templates of Gemma, Mistral and Llama 2 demand user and assistant by turns; those of Qwen 3.5 and
    later a system message at the beginning alone. Agents send several.
How to fix: merge messages of one role and all system messages into one before the request, or give the server a
    template that allows it (--chat-template).
When to ignore: never: the request is not served.
Sources: examples/tool_chat_template_*.jinja, vLLM 0.33; mistral_common's request validator.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"roles must alternate",
    r"system message must be|system message(?:s)? (?:is|are) only allowed|(?:only|multiple) (?:one )?system message",
    r"must be at the beginning",
    r"expected last role|last message (?:must|should|role)|must end with a user",
    r"unexpected role ['\"]\w+['\"] after role|not the same number of function calls",
    r"no user query found|first message must|cannot put tools in the first user message",
    r"InvalidMessageStructureException|InvalidAssistantMessageException|"
    r"(?:request_)?validator\.validate_(?:request|messages)|mistral_common.{0,120}validat",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the template refuses the order of roles: merge system messages into one at the beginning, and "
                "neighbours of one role",
                zh="模板拒绝角色顺序：请把 system 消息合并为开头的一条，并合并相邻的同角色消息",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT046",
    name="message-order-refused",
    severity=Severity.ERROR,
    summary=msg(
        "The template refuses the order of roles.",
        zh="模板拒绝消息角色的顺序。",
    ),
    check=check,
    cause=Cause.MESSAGE_ORDER_REFUSED,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/examples/tool_chat_template_mistral.jinja",
        "https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py",
    ),
    bad=(
        Example(
            "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...\n",
        ),
        Example(
            "'message': 'System message must be at the beginning.'\n",
        ),
    ),
    good=(
        Example(
            "jinja2.exceptions.TemplateError: Unexpected message role.\n",
        ),
    ),
)
