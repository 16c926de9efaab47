"""The reasoning parser is another model's.

What it does: looks for reasoning parsers that miss their tokens in the model's vocabulary.
Why it matters: thought and answer are told apart by tokens; another model's parser fails or mixes them.
How to fix: take the parser of the model's family, or leave --reasoning-parser out for a model that does not think.
When to ignore: never; the parser was refused.
Sources: vllm/reasoning, vLLM 0.7 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import remove_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (r"reasoning parser could not locate|could not locate (?:the )?think(?:ing)? (?:start/end )?tokens?",)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "the reasoning parser is not the model's: {said}", zh="推理解析器与模型不符：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, confidence, fix=remove_flag(context, "reasoning-parser"))


RULE = Rule(
    code="LOG225",
    name="reasoning-parser-of-another-model",
    severity=Severity.ERROR,
    summary=msg("The reasoning parser is another model's.", zh="推理解析器是另一个模型的。"),
    check=check,
    cause=Cause.PARSER_WRONG_FOR_MODEL,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/reasoning/basic_parsers.py",),
    bad=(
        Example(
            "RuntimeError: DeepSeek R1 reasoning parser could not locate think start/end tokens in the tokenizer!\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'reasoning_parser': 'qwen3'}\n"),),
)
