"""A web page of another origin may not ask this server (CORS).

What it does: reads a browser's refusal, or a pre-flight OPTIONS request that the server refused.
Why it matters: the browser asks first whether the page's origin is allowed; with --allowed-origins set, or a proxy
    that drops the headers, it is not.
How to fix: start the server with --allowed-origins '["http://PAGE"]', or let the page's own back end ask.
When to ignore: for clients that are no browser.
Sources: vllm/entrypoints/openai/cli_args.py (--allowed-origins), vLLM 0.33; Fetch standard (CORS protocol).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"blocked by CORS",
    r"cross-origin request blocked",
    r"disallowed CORS",
    r"No 'Access-Control-Allow-Origin'",
    r"Failed to fetch.{0,60}CORS",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    bad = [s for s in context.with_status(400, 401, 403, 405) if s.method == "OPTIONS"]
    if hit is not None or bad:
        yield context.finding(
            hit if hit is not None else bad,
            msg(
                "the page's origin is not allowed: --allowed-origins of the server must name it",
                zh="该网页的来源不被允许：服务器的 --allowed-origins 必须包含它",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT029",
    name="origin-refused",
    severity=Severity.ERROR,
    summary=msg(
        "A web page of another origin may not ask this server (CORS).",
        zh="其他来源的网页不允许访问该服务器（CORS）。",
    ),
    check=check,
    cause=Cause.ORIGIN_REFUSED,
    sources=("https://fetch.spec.whatwg.org/#http-cors-protocol",),
    bad=(
        Example(
            "Access to fetch at 'http://127.0.0.1:8000/v1/models' from origin 'http://localhost:3000' has been "
            "blocked by CORS policy\n",
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "OPTIONS /v1/chat/completions HTTP/1.1" 400 Bad Request\n',
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "OPTIONS /v1/chat/completions HTTP/1.1" 200 OK\n',
        ),
    ),
)
