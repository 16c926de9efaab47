"""The base URL lacks /v1.

What it does: reads the paths of failed requests: an endpoint of OpenAI's API without /v1 before it; and whether the
    probe finds it below /v1.
Why it matters: OpenAI clients append /chat/completions to the base URL as it is; vLLM serves it below /v1 alone and
    answers {"detail":"Not Found"}.
How to fix: end the base URL with /v1: http://HOST:PORT/v1. Not so Claude Code, whose base URL must not have it.
When to ignore: for servers that serve these paths without /v1.
Sources: vllm/entrypoints/openai/chat_completion/api_router.py, vLLM 0.33; openai-python (base_url).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.client.statements import path_of
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENDPOINT = re.compile(r"/(?:chat/completions|completions|models|embeddings|responses|messages)/?$")
ROUTE_ABSENT = (
    r"['\"]?detail['\"]?: ?['\"]Not Found['\"]",
    r"\bError code: 404\s*$",
    r"404 page not found",
    r"AI_APICallError\]: Not Found",
)


def _message(url: str) -> Message:
    return msg(
        "the base URL lacks /v1: write {url}",
        zh="base URL 缺少 /v1：应写 {url}",
        url=url,
    )


def check(context: ClientContext) -> Iterator[Finding]:
    if context.probed:
        asked, below = context.answer("models"), context.answer("models below /v1")
        lacks = "/v1" not in path_of(context.evidence.url)
        if lacks and asked is not None and not asked.ok and below is not None and below.status in (200, 401, 403):
            yield context.finding((asked, below), _message(below.url.removesuffix("/models")), SURE)
        return
    bad = [
        s
        for s in context.statements
        if ENDPOINT.search(s.path)
        and "/v1" not in s.path
        and (s.status in (404, 405, 502, 503) or (s.url and s.status is None))
    ]
    if bad:
        root = bad[0].url.partition(bad[0].path)[0] if bad[0].url else ""
        yield context.finding(bad, _message(f"{root}/v1"), SURE if bad[0].status in (404, 405) else LIKELY)
    elif (hit := context.said(*ROUTE_ABSENT)) and not context.said(r"/v1/|://\S+/v1\b"):
        yield context.finding(hit, _message("http://HOST:PORT/v1"), LIKELY)
    elif (bare := [s for s in context.with_status(404) if not s.path]) and not context.said(
        r"\bmodel\b|/v1/|://\S+/v1\b"
    ):
        yield context.finding(bare, _message("http://HOST:PORT/v1"), POSSIBLE)


RULE = Rule(
    code="CLT011",
    name="base-url-without-v1",
    severity=Severity.ERROR,
    summary=msg(
        "The base URL lacks /v1.",
        zh="base URL 缺少 /v1。",
    ),
    check=check,
    cause=Cause.PATH_WITHOUT_V1,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/chat_completion/api_router.py",
    ),
    bad=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /chat/completions HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000", "answers": [{"step": "models", "url": "http://127.0.0.1:8000/models",'
            ' "status": 404, "body": "{\\"detail\\":\\"Not Found\\"}"}, {"step": "models below /v1", "url": '
            '"http://127.0.0.1:8000/v1/models", "status": 200}]}\n',
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
        ),
    ),
)
