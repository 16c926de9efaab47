"""The server asks for a key, and none came with the request.

What it does: reads a 401 where no key was sent: the probe had none, the text says so, or only the status is known.
Why it matters: vLLM started with --api-key (or VLLM_API_KEY) answers every request under /v1 without
    "Authorization: Bearer KEY" with 401.
How to fix: give the client the value of the server's --api-key; where the client has no field for it, set the
    variable that it reads (OPENAI_API_KEY).
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/serve/middleware/authenticate.py, vLLM 0.33; openai-python src/openai/_client.py
    (api_key).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"api_key client option must be set",
    r"(?:no|missing|empty) (?:api[ _-]?key|bearer|authorization|auth(?:entication)? (?:header|token))",
    r"(?:api[ _-]?key|authorization header|auth(?:entication)? (?:header|token|credentials?)) (?:is |was )?(?:not "
    r"(?:set|provided|found|given)|missing|required|empty)",
    r"didn't provide an api key",
    r"Bearer (?:null|undefined|None)\b",
    r"Illegal header value b'Bearer ?'",
    r"environment variable (?:OPENAI|ANTHROPIC|VLLM)_API_KEY",
    r"Missing environment variable",
)


def _message() -> Message:
    return msg(
        "the server asks for a key and none came: give the client the value of the server's --api-key",
        zh="服务器要求密钥而请求没有带：请把服务器 --api-key 的值填到客户端",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    if context.probed:
        refused = next((a for a in context.evidence.answers if a.status == 401), None)
        if refused is not None and context.evidence.key is None and context.basic is None:
            yield context.finding(refused, _message(), SURE)
        return
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(hit, _message(), LIKELY)
    elif refused_lines := context.with_status(401):
        yield context.finding(refused_lines, _message(), POSSIBLE)


RULE = Rule(
    code="CLT001",
    name="key-missing",
    severity=Severity.ERROR,
    summary=msg(
        "The server asks for a key, and none came with the request.",
        zh="服务器要求密钥，而请求没有带。",
    ),
    check=check,
    cause=Cause.KEY_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/serve/middleware/authenticate.py",),
    bad=(
        Example(
            "openai.OpenAIError: The api_key client option must be set either by passing api_key to the client or "
            "by setting the OPENAI_API_KEY environment variable\n",
        ),
        Example(
            'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 401, "body": '
            '"{\\"error\\":\\"Unauthorized\\"}"}]}\n',
        ),
    ),
    good=(
        Example(
            'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "key": {"length": 8}, "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 401, "body": '
            '"{\\"error\\":\\"Unauthorized\\"}"}]}\n',
        ),
    ),
)
