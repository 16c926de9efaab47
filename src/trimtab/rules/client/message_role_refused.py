"""A message has a role that the server or the template does not know.

What it does: reads refusals of a role: of the request model, or of the chat template.
Why it matters: agents send developer or system where the endpoint's model knows user and assistant alone, or a
    template knows no tool role.
How to fix: update vLLM (/v1/messages takes system entries from 0.23), or have the client send system instead of
    developer.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/anthropic/protocol.py, vLLM 0.22 and 0.23; chat templates (raise_exception on roles).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"loc['\"]?: ?[\[(]['\"]body['\"], ?['\"]messages['\"].{0,60}['\"]role['\"].{0,120}['\"]input['\"]: "
    r"?['\"](?P<role>\w+)",
    r"['\"]messages['\"].{0,40}['\"]role['\"][\])].{0,80}input should be",
    r"unexpected message role|unknown (?:message )?role|invalid (?:message )?role",
    r"only user,? (?:and )?assistant(?: and \w+)? roles are supported|roles? .{0,30}(?:is|are) not supported",
    r"unexpected role ['\"](?P<role>\w+)['\"](?! after)",
    r"role: unknown variant [`'\"]?(?P<role>\w+)|(?P<kind>system|developer|tool) messages? (?:is|are) not allowed",
    r"system role not supported|does not support (?:the )?(?P<role>system|developer|tool) (?:role|messages?)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "a message's role is not taken here: {role}",
                zh="此处不接受该消息角色：{role}",
                role=(hit["role"] or hit["kind"] or "?").lower(),
            ),
            POSSIBLE if context.said(r"extra_forbidden") else SURE,
        )


RULE = Rule(
    code="CLT045",
    name="message-role-refused",
    severity=Severity.ERROR,
    summary=msg(
        "A message has a role that the server or the template does not know.",
        zh="某条消息的角色是服务器或模板不认识的。",
    ),
    check=check,
    cause=Cause.MESSAGE_ROLE_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/anthropic/protocol.py",),
    bad=(
        Example(
            "{'type': 'literal_error', 'loc': ('body', 'messages', 1, 'role'), 'msg': \"Input should be 'user' or "
            "'assistant'\", 'input': 'system'}\n",
        ),
        Example(
            "jinja2.exceptions.TemplateError: Unexpected message role.\n",
        ),
    ),
    good=(
        Example(
            "jinja2.exceptions.TemplateError: System message must be at the beginning.\n",
        ),
    ),
)
