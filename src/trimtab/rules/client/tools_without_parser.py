"""Tools are sent to a server that has no tool parser.

What it does: reads the refusal, which names the two flags.
Why it matters: agents send tools with every request; without --enable-auto-tool-choice and a parser vLLM refuses
    them with 400 (from 0.13 for every tool_choice).
How to fix: start the server with --enable-auto-tool-choice --tool-call-parser PARSER; which parser a model has:
    trimtab explain --tool-call-parser.
When to ignore: when the client can leave the tools out.
Sources: vllm/entrypoints/openai/serving_chat.py, vLLM 0.6 to 0.13; vllm/entrypoints/serve/render/serving.py, vLLM
    0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"tool[ _]choice.{0,40}requires\W+(?:--enable-auto-tool-choice|--tool-call-parser)",
    r"requires --?tool-call-parser|--enable-auto-tool-choice.{0,60}(?:to be set|must be|required)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "tools were sent and the server has no parser for them: --enable-auto-tool-choice "
                "--tool-call-parser NAME",
                zh="发送了工具而服务器没有解析器：--enable-auto-tool-choice --tool-call-parser NAME",
            ),
            SURE,
            Severity.WARNING if context.probed else None,
        )


RULE = Rule(
    code="CLT053",
    name="tools-without-parser",
    severity=Severity.ERROR,
    summary=msg(
        "Tools are sent to a server that has no tool parser.",
        zh="向没有工具解析器的服务器发送了工具。",
    ),
    check=check,
    cause=Cause.TOOL_PARSER_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/serve/render/serving.py",),
    bad=(
        Example(
            'openai.BadRequestError: Error code: 400 - {"message":"\\"auto\\" tool choice requires '
            '--enable-auto-tool-choice and --tool-call-parser to be set"}\n',
        ),
        Example(
            '"auto" tool choice requires \n"--enable-auto-tool-choice and --tool-call-parser to be set"\n',
        ),
    ),
    good=(
        Example(
            "ValueError: When using `tool_choice`, `tools` must be set.\n",
        ),
    ),
)
