"""The server refuses this tool_choice or this list of tools.

What it does: reads refusals of tool_choice although a parser is set.
Why it matters: which of auto, required, none and a named tool are taken differs by release and by endpoint (the
    Responses API with Harmony takes auto alone), and tools must be given with a choice.
How to fix: send tool_choice "auto", name a tool that the list holds, and leave out tools and choice together.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/protocol.py, vLLM 0.4 to 0.13 (check_tool_usage);
    vllm/entrypoints/openai/responses/serving.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"tool_choice['\"`]? ?= ?['\"]?\w+['\"]? is not supported",
    r"when using [`'\"]?tool_choice[`'\"]?,? [`'\"]?tools",
    r"invalid value for [`'\"]?tool_choice",
    r"expected field [`'\"]\w+[`'\"] in .{0,30}tool_choice",
    r"tool .{0,40}in [`'\"]?tool_choice[`'\"]? does not match",
    r"[`'\"]?tool_choice[`'\"]? (?:must|is not|requires a function|should)",
    r"only ['\"]?auto['\"]? (?:or ['\"]?none['\"]? )?tool_choice is supported",
    r"named tool choice for .{0,40}requires",
    r"either use guided decoding or tools",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "this tool_choice or tool list is refused: send auto, or name a tool of the list",
                zh="该 tool_choice 或工具列表被拒绝：请发送 auto，或指定列表中的工具",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT044",
    name="tool-choice-refused",
    severity=Severity.ERROR,
    summary=msg(
        "The server refuses this tool_choice or this list of tools.",
        zh="服务器拒绝这个 tool_choice 或工具列表。",
    ),
    check=check,
    cause=Cause.TOOL_CHOICE_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/responses/serving.py",),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'tool_choice = \"required\" is not supported!'}\n",
        ),
        Example(
            "ValueError: When using `tool_choice`, `tools` must be set.\n",
        ),
    ),
    good=(
        Example(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set\n',
        ),
    ),
)
