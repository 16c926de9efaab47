"""The tool parser is another model's.

What it does: looks for parsers that miss their tokens in the model's vocabulary, at the start or at the first call.
Why it matters: each model marks its calls in its own way; another's parser fails, or leaves the calls in the text.
How to fix: take the parser of the model's family; the linter (`trimtab lint`) names it.
When to ignore: never; tool calls do not work.
Sources: vllm/tool_parsers (vllm/entrypoints/openai/tool_parsers up to 0.12), vLLM 0.6 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, LIKELY, POSSIBLE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Tt]ool (?:[Pp]arser|XML parser) could not locate|parser: tokenizer did not include",
    r"could not locate (?:the )?tool calls? (?:start/end )?tokens?",
    r"KeyError: '</?[\w|:]*tool_?calls?[\w|:]*>'",
)
TEXT = (r"HarmonyError: ",)
"""gpt-oss wrote what is not of its format, or an older openai_harmony does not read it."""
MAYBE = (r"Error in extracting tool call from response",)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, TEXT), (POSSIBLE, MAYBE))
    guess = words.guessed(context, OF_PARSERS, PARSERS) if found is None else None
    found = (guess, HUNCH) if guess is not None else found
    if found is not None:
        hit, confidence = found
        message = msg(
            "the tool parser is not the model's: {said}", zh="工具解析器与模型不符：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


OF_PARSERS = r"[Tt]ool[_ -]?(?:[Cc]all )?[Pp]arser|[Rr]easoning[_ -]?[Pp]arser"
PARSERS = r"tool_parsers?[/\\]\w+\.py|vllm[/\\]reasoning[/\\]"


RULE = Rule(
    code="LOG224",
    name="tool-parser-of-another-model",
    severity=Severity.ERROR,
    summary=msg("The tool parser is another model's.", zh="工具解析器是另一个模型的。"),
    check=check,
    cause=Cause.PARSER_WRONG_FOR_MODEL,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/tool_parsers/hermes_tool_parser.py",),
    bad=(
        Example("RuntimeError: Jamba Tool parser could not locate tool calls start/end tokens in the tokenizer!\n"),
        Example("KeyError: '<tool_call>'\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [serving.py:1] Using hermes tool parser.\n"),),
)
