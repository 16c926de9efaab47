"""A field of the request has a value that the server refuses.

What it does: reads 400 and 422 about ranges, types and limits of known fields.
Why it matters: vLLM checks each sampling parameter (temperature, top_p, n, logprobs, max_tokens, stop) and the
    shape of messages.
How to fix: give a value in the range that the text names; for logprobs raise --max-logprobs of the server.
When to ignore: never: the request is not served.
Sources: vllm/sampling_params.py and vllm/entrypoints/openai/chat_completion/protocol.py, vLLM 0.33; pydantic's
    validation errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, VAGUE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"currently only supports? response_format|structured output backend must match engine-level",
    r"logprobs of \d+, which is greater than max allowed|cannot request more than \d+ (?:top_)?logprobs|"
    r"top[_ ]logprobs['\"`]? must|(?:does not|doesn't) support \W?(?:top_)?logprobs|please remove ['\"`]\w+",
    r"\b(?:temperature|top_p|top_k|min_p|n|best_of|logprobs|prompt_logprobs|top_logprobs|presence_penalty|"
    r"frequency_penalty|repetition_penalty|min_tokens|max_tokens|max_completion_tokens|length_penalty|"
    r"truncate_prompt_tokens|seed|stop|stop_token_ids|logit_bias|stream_options)['\"`]? (?:must|cannot|should|can "
    r"only|is not|has to)\b",
    r"\b(?:prompt|input|messages?|content)['\"`]? (?:cannot|must not|should not|can't) be (?:empty|null|none)\b",
    r"empty conversation|at least one message|Invalid type for ['\"`]?[\w.\[\]]+",
    r"max_tokens must be at least 1, got 0",
    r"invalid value for ['\"`]?(?!tool_choice)\w+",
    r"logit_bias .{0,40}(?:vocab|out of)",
    r"(?:BadRequestError|Error code: 400).{0,120}(?:Unterminated string starting at|Invalid \\+escape|Extra data|"
    r"Expecting (?:value|property name|'[,:]' delimiter))",
    r"cannot be set to True.{0,80}continue_final_message",
)
NULL = r"TypeError: '[<>]=?' not supported between instances of 'NoneType' and '(?:int|float)'"
"""A field came as null, and this version compares it with a number."""
SAMPLING = r"sampling_params\.py|in _verify_args"
WEAK = (
    r"['\"]type['\"]: ?['\"](?:missing|\w+_type|\w+_parsing|greater_than\w*|less_than\w*|value_error|too_(?:short|"
    r"long)|enum|json_invalid)['\"]",
    r"field required|input should be (?!'user')",
    r"(?:BadRequestError|Error code: 4(?:00|22)).{0,200}(?:must be|should be|invalid)",
)


UNSAID = r"\b4(?:00|22) status code \(no body\)"
UNTOLD = msg(
    "the server refused the request and the client does not show its answer: send the same request with curl, or look "
    "into the server's log",
    zh="服务器拒绝了请求，而客户端没有显示其答复：请用 curl 发送同样的请求，或查看服务器日志",
)
"""openai-node, where the error's body is none that it knows, as of vLLM to 0.9."""


def _message() -> Message:
    return msg(
        "a field's value is refused: the text names the field and what it may be",
        zh="某个字段的值被拒绝：错误文本给出了字段名与允许的取值",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None or ((hit := context.said(NULL)) is not None and context.said(SAMPLING)):
        yield context.finding(hit, _message(), LIKELY)
    elif hit := context.said(UNSAID):
        yield context.finding(hit, UNTOLD, VAGUE)
    elif hit := context.said(*WEAK):
        yield context.finding(hit, _message(), POSSIBLE)


RULE = Rule(
    code="CLT043",
    name="field-value-refused",
    severity=Severity.ERROR,
    summary=msg(
        "A field of the request has a value that the server refuses.",
        zh="请求中某个字段的值被服务器拒绝。",
    ),
    check=check,
    cause=Cause.FIELD_VALUE_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/sampling_params.py",),
    bad=(
        Example(
            "ValueError: Requested sample logprobs of 30, which is greater than max allowed: 20\n",
        ),
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'temperature must be non-negative, got -1.0.'}\n",
        ),
        Example(
            "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]\n",
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
    ),
)
