"""The generated tokens left the grammar, and the request was ended.

What it does: reads the words of the grammar's state machine in the log.
Why it matters: tokenizer and grammar disagree on a token (end of text, special tokens), or speculation ran ahead of
    it: vLLM ends the request.
How to fix: update vLLM; try another back end (--structured-outputs-config) or the request without speculation.
When to ignore: when it is seldom and the client sends it again.
Sources: vllm/v1/structured_output/backend_xgrammar.py (accept_tokens) and vllm/v1/core/sched/scheduler.py, vLLM 0.8
    to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"failed to advance (?:the )?FSM|FSM failed to advance",
    r"grammar .{0,30}rejected tokens?|rejected tokens? .{0,60}grammar",
    r"(?:grammar|FSM|structured output).{0,80}terminat(?:ing|ed) (?:the )?request",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the generated tokens left the grammar, and the request was ended",
                zh="生成的 token 违反了语法，请求被终止",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT051",
    name="answer-left-the-grammar",
    severity=Severity.ERROR,
    summary=msg(
        "The generated tokens left the grammar, and the request was ended.",
        zh="生成的 token 违反了语法，请求被终止。",
    ),
    check=check,
    cause=Cause.STRUCTURED_OUTPUT_ABORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/structured_output/backend_xgrammar.py",),
    bad=(
        Example(
            "ERROR [backend_xgrammar.py:160] Failed to advance FSM for request cmpl-1 for tokens 7. Please file an "
            "issue.\n",
        ),
    ),
    good=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'temperature must be non-negative, got -1.0.'}\n",
        ),
    ),
)
