"""The key that came with the request is another than the server's.

What it does: reads a 401 or 403 where a key was sent in the right header and has the form of one.
Why it matters: the server compares the whole text; a key of another server, an expired one or a place-holder is
    refused with 401.
How to fix: copy the value of --api-key (or VLLM_API_KEY) of the running server; restart the client, which may hold
    the old one.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/serve/middleware/authenticate.py, vLLM 0.33; OpenAI's error code invalid_api_key.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"(?:incorrect|invalid|wrong|bad|expired|unknown|revoked) (?:api[ _-]?key|bearer token|x-api-key|"
    r"auth(?:entication)? token|credentials)",
    r"invalid_api_key",
    r"(?:api[ _-]?key|(?:access|auth\w*|bearer|api) token)\b.{0,40}\b(?:is|was|has) (?:not valid|invalid|incorrect|"
    r"wrong|expired|been revoked)",
    r"key .{0,30}(?:not recogni[sz]ed|does not match)",
)


def _another_header_serves(context: ClientContext) -> bool:
    other = context.answer("other header")
    return other is not None and other.ok


def _message() -> Message:
    return msg(
        "the server refuses the key: it is another than its --api-key or VLLM_API_KEY",
        zh="服务器拒绝了密钥：它与服务器的 --api-key 或 VLLM_API_KEY 不同",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    evidence = context.evidence
    if context.probed:
        refused = next((a for a in evidence.answers if a.status in (401, 403)), None)
        sound = evidence.key is not None and not (
            evidence.key.has_blank or evidence.key.has_quotes or evidence.key.has_scheme
        )
        if refused is not None and sound and context.basic is None and not _another_header_serves(context):
            yield context.finding(refused, _message(), SURE)
        return
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(hit, _message(), LIKELY)
    elif (refused_lines := context.with_status(401, 403)) and context.said(r"Authorization: ?Bearer \S{3,}"):
        yield context.finding(refused_lines, _message(), LIKELY)
    elif refused_lines:
        yield context.finding(refused_lines, _message(), 0.45)


RULE = Rule(
    code="CLT002",
    name="key-wrong",
    severity=Severity.ERROR,
    summary=msg(
        "The key that came with the request is another than the server's.",
        zh="请求所带的密钥与服务器的不同。",
    ),
    check=check,
    cause=Cause.KEY_WRONG,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/serve/middleware/authenticate.py",
        "https://github.com/openai/openai-python/blob/main/src/openai/_exceptions.py",
    ),
    bad=(
        Example(
            "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided: "
            "sk-12345. You can find your API key in the console.', 'code': 'invalid_api_key'}}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "key": {"length": 8}, "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 401, "body": '
            '"{\\"error\\":\\"Unauthorized\\"}"}]}\n',
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "key": {"length": 8}, "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}]}\n',
        ),
    ),
)
