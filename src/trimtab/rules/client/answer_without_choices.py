"""The client read an error, or nothing, as a completion.

What it does: reads failures on `choices`: the field that every completion has and no error has.
Why it matters: the reply was an error body, null or a page, and the client did not look at the status: what went
    wrong is one layer above.
How to fix: send the same request with curl and read the whole answer: the status and its text name the cause (key,
    path, model, tools without a parser).
When to ignore: never: the answer is lost.
Sources: OpenAI API reference (chat completion object); V8's and Python's texts for a missing field.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import POSSIBLE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"reading '(?:choices|0|message|content|delta)'",
    r"KeyError: ['\"]choices['\"]",
    r"property ['\"]?choices['\"]? of (?:null|undefined)",
    r"evaluating '[^']*choices",
    r"has no attribute 'choices'",
    r"choices.{0,40}(?:is not iterable|is undefined|is null|not subscriptable)",
    r"'NoneType' object is not subscriptable",
    r"(?:no|missing|empty|without|invalid) choices|choices (?:field )?(?:is |was )?(?:missing|empty|not found)",
    r"missing field `choices`|[\"']path[\"']: ?\[[\"']choices[\"']\]",
    r"list index out of range.{0,80}choices|choices\[0\].{0,200}list index out of range",
    r"null value for [`'\"]?choices|No generations? (?:chunks )?(?:were|was|found)",
    r"validation errors? for (?:(?:Chat)?Generation(?:Chunk)?|AIMessage(?:Chunk)?|CompletionResponse|ChatResponse)\b",
    r"'str' object has no attribute '(?:model_dump|dict|generations)'",
    r"did not provide any assistant messages|model returned (?:an )?(?:empty|no) (?:response|message)",
)


BEHIND = 0.45
"""An error's own text may name its cause to another rule, which comes first then."""


def _message() -> Message:
    return msg(
        "the reply was no completion, and the client did not look: the status and text of the reply name the cause",
        zh="返回的不是补全结果，而客户端没有检查：返回的状态码与文本才说明原因",
    )


def _error_inside(text: str, *, streamed: bool) -> Message:
    if streamed:
        return msg(
            "the stream was answered with 200 and then told an error in place of its text: {text}",
            zh="流式回答以 200 开始，随后给出的不是文本而是错误：{text}",
            text=text,
        )
    return msg(
        "the reply says 200 and is no completion: {text}; a client reads it as one, and fails at `choices`",
        zh="返回状态为 200，却不是补全结果：{text}；客户端把它当作补全结果，于是在 `choices` 处失败",
        text=text,
    )


def check(context: ClientContext) -> Iterator[Finding]:
    if not context.probed:
        hit = context.said(*PATTERNS)
        if hit is not None:
            yield context.finding(hit, _message(), POSSIBLE)
        return
    for step in ("chat", "stream"):
        answer, fault = context.answer(step), context.fault(step)
        if answer is None or fault is None or not answer.ok or fault.html:
            continue
        yield context.finding(answer, _error_inside(fault.message, streamed=answer.events > 0), BEHIND)
        return


RULE = Rule(
    code="CLT026",
    name="answer-without-choices",
    severity=Severity.ERROR,
    summary=msg(
        "The client read an error, or nothing, as a completion.",
        zh="客户端把错误或空内容当作了补全结果。",
    ),
    check=check,
    cause=Cause.ANSWER_WITHOUT_CHOICES,
    sources=("https://platform.openai.com/docs/api-reference/chat/object",),
    bad=(
        Example(
            "TypeError: Cannot read properties of undefined (reading 'choices')\n",
        ),
        Example(
            "KeyError: 'choices'\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "kind": '
            '"application/json", "body": "{\\"error\\":\\"upstream failed\\"}"}]}\n',
        ),
    ),
    good=(
        Example(
            "TypeError: Cannot read properties of undefined (reading 'map')\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "kind": '
            '"application/json", "body": "{\\"choices\\":[]}"}]}\n',
        ),
    ),
)
