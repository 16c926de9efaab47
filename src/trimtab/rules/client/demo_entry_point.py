"""The demo server runs: it has /generate and none of OpenAI's routes.

What it does: reads a 404 for /v1/... where the right path was asked, and the launch command where it is known.
Why it matters: python -m vllm.entrypoints.api_server starts a demo with /generate alone; every OpenAI client gets
    404 from it.
How to fix: start vllm serve MODEL, or python -m vllm.entrypoints.openai.api_server --model MODEL.
When to ignore: when the server is another one that has no such route.
Sources: vllm/entrypoints/api_server.py (up to 0.24), vllm/entrypoints/cli/serve.py, vLLM 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DEMO = re.compile(r"vllm\.entrypoints\.api_server|entrypoints/api_server")
V1 = re.compile(r"^/v1/(?:chat/completions|completions|models)$")


def _message() -> Message:
    return msg(
        "/v1 is not served at all: the demo server (vllm.entrypoints.api_server) runs; start vllm serve MODEL",
        zh="/v1 根本没有提供：运行的是演示服务器（vllm.entrypoints.api_server）；请用 vllm serve MODEL 启动",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    bad = [s for s in context.with_status(404) if V1.search(s.path)]
    if context.probed:
        demo = context.answer("generate")
        if demo is not None and demo.status in (405, 422):
            yield context.finding(demo, _message(), LIKELY)
        return
    if not bad:
        return
    words = context.command.argv() if context.command is not None else ()
    named = any(DEMO.search(word) for word in words) or context.said(r"vllm[./]entrypoints[./]api_server") is not None
    served = bool(words) and not named
    if not served:
        yield context.finding(bad, _message(), SURE if named else POSSIBLE)


RULE = Rule(
    code="CLT016",
    name="demo-entry-point",
    severity=Severity.ERROR,
    summary=msg(
        "The demo server runs: it has /generate and none of OpenAI's routes.",
        zh="运行的是演示服务器：它只有 /generate，没有 OpenAI 的路由。",
    ),
    check=check,
    cause=Cause.ENTRYPOINT_WRONG,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/cli/serve.py",),
    bad=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found\n',
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
        ),
    ),
)
