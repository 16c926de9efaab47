"""The answer came whole and holds no text.

What it does: looks at the text of a short completion that ended properly.
Why it matters: a reasoning model spent all tokens on thoughts, the template ends the answer at once, or a parser
    took the text away.
How to fix: raise max_tokens, look at reasoning (or reasoning_content) in the answer, and compare with the model's
    own chat template.
When to ignore: for requests of one token.
Sources: OpenAI API reference (finish_reason); vllm/reasoning, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: ClientContext) -> Iterator[Finding]:
    stream = context.answer("stream")
    if stream is not None and stream.ok and stream.finish_reason is not None and not stream.text and stream.events:
        yield context.finding(
            stream,
            msg(
                "the stream ended ({finish}) without any text: raise max_tokens, or look at its reasoning",
                zh="流结束（{finish}）但没有任何文本：请提高 max_tokens，或查看其 reasoning",
                finish=stream.finish_reason,
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT060",
    name="answer-empty",
    severity=Severity.WARNING,
    summary=msg(
        "The answer came whole and holds no text.",
        zh="回答完整返回，但没有文本。",
    ),
    check=check,
    cause=Cause.ANSWER_EMPTY,
    sources=("https://platform.openai.com/docs/api-reference/chat/object",),
    bad=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "events": 3, '
            '"finish_reason": "stop", "text": ""}]}\n',
        ),
    ),
    good=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "events": 3, '
            '"finish_reason": "stop", "text": "Hi"}]}\n',
        ),
    ),
)
