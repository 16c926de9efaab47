"""Tools were sent to a server that was started without a tool parser.

What it does: looks for the refusal of requests with tools, automatic and required.
Why it matters: a client that sends tools gets 400; an agent stops at its first step.
How to fix: start the server with --enable-auto-tool-choice and the model's own --tool-call-parser, or let the client
    send no tools.
When to ignore: when tools are not wanted on this server.
Sources: vllm/entrypoints/openai/serving_chat.py and vllm/entrypoints/serve, vLLM 0.6 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

SAYS = (
    r'(?:\\*"?auto\\*"?|tool_choice|"required"|required) tool choice requires',
    r"requires --enable-auto-tool-choice and --tool-call-parser",
    r"--enable-auto-tool-choice and --tool-call-parser to be set",
    r"tool_choice=\S+ requires --tool-call-parser",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "tools were sent to a server without a tool parser: {said}",
            zh="向没有工具解析器的服务器发送了工具：{said}",
            said=words.said(hit),
        )
        yield context.finding(
            hit,
            message,
            confidence,
            fix=set_flag(context, "enable-auto-tool-choice", None, Grade.DISPLAY),
            severity=words.by_request(context),
        )


RULE = Rule(
    code="LOG222",
    name="tool-parser-missing",
    severity=Severity.ERROR,
    summary=msg(
        "Tools were sent to a server that was started without a tool parser.", zh="向没有工具解析器的服务器发送了工具。"
    ),
    check=check,
    cause=Cause.TOOL_PARSER_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/serving_chat.py",),
    bad=(
        Example(
            '{"object":"error","message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and '
            '--tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}\n'
        ),
    ),
    good=(Example('INFO 11-30 03:43:16 [serving.py:1] "auto" tool choice has been enabled.\n'),),
)
