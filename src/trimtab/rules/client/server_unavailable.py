"""The server or its gateway is up, and cannot take the request now.

What it does: reads 503 and 429, and texts of loading or overloaded servers.
Why it matters: a model that still loads, a full queue, a rate limit or a gateway without a healthy server answers
    so.
How to fix: wait for readiness (GET /health gives 200), raise the limit that refuses, or add capacity; a client
    should wait between retries.
When to ignore: when it passes by itself.
Sources: RFC 9110 section 15.6.4; vllm/entrypoints/serve/instrumentator/health.py, vLLM 0.33 (503 of a dead engine);
    LiteLLM router.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"service (?:temporarily )?unavailable|too many requests|rate ?limit(?:ed| reached| exceeded|Error)",
    r"no healthy upstream|upstream connect error or disconnect|no deployments available",
    r"['\"]loading model['\"]|unavailable_error|model is (?:still )?loading|is overloaded|overloaded_error|server "
    r"is busy|at capacity",
)


def check(context: ClientContext) -> Iterator[Finding]:
    health = context.answer("health")
    bad = context.with_status(503, 429)
    hit = context.said(*PATTERNS)
    dead = health is not None and health.status == 503
    if bad or hit is not None or dead:
        shown = bad or ((health,) if dead else (hit,))
        yield context.finding(
            [part for part in shown if part is not None],
            msg(
                "the server says itself that it is not well (/health gives 503): its engine is dead or still starting",
                zh="服务器自报不健康（/health 返回 503）：引擎已死或仍在启动",
            )
            if dead
            else msg(
                "the server or its gateway cannot take the request now: loading, full or limited",
                zh="服务器或网关现在不能接受请求：正在加载、已满或被限流",
            ),
            SURE if dead else LIKELY,
        )


RULE = Rule(
    code="CLT035",
    name="server-unavailable",
    severity=Severity.ERROR,
    summary=msg(
        "The server or its gateway is up, and cannot take the request now.",
        zh="服务器或网关在运行，但现在不能接受请求。",
    ),
    check=check,
    cause=Cause.SERVER_UNAVAILABLE,
    sources=("https://www.rfc-editor.org/rfc/rfc9110#section-15.6.4",),
    bad=(
        Example(
            "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached'}}\n",
        ),
        Example(
            "no healthy upstream\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "health", "url": '
            '"http://127.0.0.1:8000/health", "status": 503}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "health", "url": '
            '"http://127.0.0.1:8000/health", "status": 200}]}\n',
        ),
    ),
)
