"""The tool or reasoning parser does not fit the model.

What it does: reads parsers that do not find their tokens, or fail on what the model wrote.
Why it matters: each parser looks for the marks of one family (<tool_call>, [TOOL_CALLS], <think>): with another
    model's it fails, or calls come as text.
How to fix: give the parser of the model: trimtab explain --tool-call-parser, trimtab explain --reasoning-parser.
When to ignore: never: calls or thoughts are lost.
Sources: vllm/tool_parsers and vllm/reasoning, vLLM 0.33 (tokens that a parser looks up).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"KeyError: ['\"](?:<\|?\w+\|?>|\[TOOL_CALLS\])['\"]",
    r"parser could not locate|could not locate .{0,60}tokens? in the tokenizer",
    r"error (?:in extracting|trying to handle streaming) tool call|error in (?:extracting|parsing) tool call",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the parser looks for marks that this model does not write: give the model's own parser",
                zh="解析器查找的标记不是该模型所写：请使用模型自己的解析器",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT056",
    name="parser-of-another-model",
    severity=Severity.ERROR,
    summary=msg(
        "The tool or reasoning parser does not fit the model.",
        zh="工具或推理解析器与模型不匹配。",
    ),
    check=check,
    cause=Cause.PARSER_WRONG_FOR_MODEL,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/tool_parsers/hermes_tool_parser.py",),
    bad=(
        Example(
            "RuntimeError: Hermes 2 Pro Tool parser could not locate tool call start/end tokens in the tokenizer!\n",
        ),
        Example(
            "KeyError: '<tool_call>'\n",
        ),
    ),
    good=(
        Example(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set\n',
        ),
    ),
)
