"""The path holds /v1 or the endpoint twice.

What it does: reads the paths of failed requests, and the base URL of the probe.
Why it matters: the client appends what the base URL already ends with: /v1/v1/... or
    /chat/completions/chat/completions is no route, and the answer is 404.
How to fix: take from the base URL what the client adds: for OpenAI clients it ends with /v1, for Claude Code and
    clients that add /v1 themselves with the port.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/anthropic/api_router.py (/v1/messages), vLLM 0.33; Claude Code settings
    (ANTHROPIC_BASE_URL).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DOUBLED = re.compile(
    r"/v1/+v1(?:/|$)|/(chat/completions|completions|responses|messages|models|"
    r"embeddings)/(?:v1/)?(?:chat/)?(?:completions|responses|messages|models|embeddings)"
)
ENDPOINT = re.compile(r"/(?:chat/completions|completions|models|embeddings|responses|messages)/?$")


def check(context: ClientContext) -> Iterator[Finding]:
    bad = [s for s in context.statements if DOUBLED.search(s.path)]
    if context.probed and not bad:
        served = context.answer("models below /v1")
        if DOUBLED.search(context.evidence.url + "/") or (
            ENDPOINT.search(context.evidence.url) and served and served.ok
        ):
            bad = [s for s in context.statements if s.url.startswith(context.evidence.url)][:1]
    anthropic = context.said(r"ANTHROPIC_BASE_URL[\"']?[ =:]+[\"']?https?://[^\s\"']+/v1\b")
    if anthropic and context.with_status(404) and not bad:
        message = msg(
            "Anthropic's clients add /v1 themselves: leave it out of ANTHROPIC_BASE_URL",
            zh="Anthropic 的客户端会自行加上 /v1：ANTHROPIC_BASE_URL 中不要写它",
        )
        yield context.finding(anthropic, message, LIKELY)
    if bad:
        yield context.finding(
            bad,
            msg(
                "the path {path} holds twice what it should hold once: shorten the base URL by it",
                zh="路径 {path} 把只应出现一次的部分写了两次：请把它从 base URL 中去掉",
                path=bad[0].path,
            ),
            SURE,
        )


RULE = Rule(
    code="CLT012",
    name="base-url-with-v1-twice",
    severity=Severity.ERROR,
    summary=msg(
        "The path holds /v1 or the endpoint twice.",
        zh="路径里出现了两次 /v1 或端点。",
    ),
    check=check,
    cause=Cause.PATH_V1_DOUBLED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/anthropic/api_router.py",),
    bad=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/v1/messages HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions/chat/completions HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            "export ANTHROPIC_BASE_URL=http://localhost:8000/v1\nAPI Error: 404 Not Found\n",
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/messages HTTP/1.1" 200 OK\n',
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/messages HTTP/1.1" 404 Not Found\n',
        ),
    ),
)
