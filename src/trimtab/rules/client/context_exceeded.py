"""Prompt and requested answer are longer than the context.

What it does: reads the numbers of a 400 about length, in the wordings of all releases.
Why it matters: vLLM refuses what does not fit; clients often send max_tokens as large as the whole context, or the
    whole history.
How to fix: lower max_tokens or shorten the prompt; or start the server with a larger --max-model-len where the KV
    cache holds it (trimtab budget).
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/serving_engine.py, vLLM 0.2 to 0.12; vllm/renderers/params.py and
    vllm/v1/engine/input_processor.py, vLLM 0.33; OpenAI's context_length_exceeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"maximum context length is",
    r"longer than the maximum model length",
    r"context_length_exceeded|ContextWindowExceeded|exceed_context_size|context window exceeded",
    r"max_tokens must be at least 1, got -",
    r"(?:is too long and )?exceeds? (?:the )?(?:limit of|model'?s? |maximum |available )?(?:context|max_model_len|"
    r"model len)",
    r"prompt is too long|input is too long|Input prompt \(\d+ tokens\) is too long",
    r"max_(?:completion_)?tokens['`]?(?: or 'max_completion_tokens')? is too large",
    r"cannot be greater than max_(?:model_len|total_tokens)",
    r"reduce the length of the (?:messages|prompt|input)",
    r"exceeds? (?:the )?context (?:window|size|length)|(?:input|context) (?:length|tokens?) (?:\S+ )?exceeds?",
)
LIMIT = (
    r"(?:context length is|model length of|limit of|max_model_len\s*[=(]?|(?<!-)>|context size \(?|limit is)"
    r"\s*(?P<n>[\d,]+)"
)
ASKED = (
    r"(?:requested|resulted in|contains (?:at least )?|prompt \(length|got|Input prompt \(|too long: )\s*(?P<n>[\d,]+)"
)
OUTPUT = r"(?P<n>[\d,]+) (?:in the completion|output tokens|for the completion)"


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text, re.IGNORECASE)
    digits = found["n"].replace(",", "") if found else ""
    return int(digits) if 0 < len(digits) < 12 else None


def _message(asked: int, limit: int, output: int | None) -> Message:
    if output is None:
        return msg(
            "{asked:,} tokens were asked for and {limit:,} fit in the context",
            zh="请求了 {asked:,} 个 token，而上下文只能容纳 {limit:,} 个",
            asked=asked,
            limit=limit,
        )
    return msg(
        "{asked:,} tokens were asked for, {output:,} of them for the answer, and {limit:,} fit in the context",
        zh="请求了 {asked:,} 个 token（其中 {output:,} 个用于输出），而上下文只能容纳 {limit:,} 个",
        asked=asked,
        limit=limit,
        output=output,
    )


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is None:
        return
    text = hit.statement.text
    limit, asked, output = (_number(pattern, text) for pattern in (LIMIT, ASKED, OUTPUT))
    if limit and asked:
        yield context.finding(hit, _message(asked, limit, output), SURE)
    else:
        yield context.finding(
            hit,
            msg(
                "prompt and requested answer do not fit in the context: lower max_tokens or shorten the prompt",
                zh="提示词与所请求的输出超出上下文：请减小 max_tokens 或缩短提示词",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT041",
    name="context-exceeded",
    severity=Severity.ERROR,
    summary=msg(
        "Prompt and requested answer are longer than the context.",
        zh="提示词与所请求的输出超过了上下文长度。",
    ),
    check=check,
    cause=Cause.CONTEXT_EXCEEDED,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/renderers/params.py",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/engine/input_processor.py",
    ),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'error': {'message': \"This model's maximum context length "
            'is 4096 tokens. However, you requested 5000 tokens (900 in the messages, 4100 in the completion)."}}\n',
        ),
        Example(
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.\n",
        ),
        Example(
            "ValueError: max_tokens must be at least 1, got -12.\n",
        ),
    ),
    good=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'max_tokens must be at least 1, got 0.'}\n",
        ),
    ),
)
