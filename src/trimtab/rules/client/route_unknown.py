"""This server has no such route, or not for this method.

What it does: reads the path of a 404 or 405 that is a route of another API, of another release or of another kind
    of model.
Why it matters: /generate is the demo server's, /api/chat Ollama's; /v1/responses and /v1/messages came with later
    releases; an instance serves generation or embeddings.
How to fix: use a route that the server lists at /openapi.json, or choose the client's OpenAI-compatible provider;
    for Codex wire_api = "chat" where /v1/responses is absent.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/*/api_router.py, vLLM 0.33 (routes); Codex configuration (wire_api); Ollama API
    reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ROUTES = re.compile(
    r"^/generate|^/api/|^/v1/(?!chat/completions|completions$|models|v1/)|^/(?!v1|chat|completions|models|"
    r"embeddings|responses|messages)\w+"
)
PATTERNS = (
    r"Method Not Allowed",
    r"/v1/(?:responses|messages|embeddings|rerank|score|audio/\w+)['\"]?,?\s+status_?code['\"]?: 40[45]",
    r"Cannot (?:GET|POST|PUT) /\S*|Invalid URL \((?:GET|POST|PUT) /",
    r"wire_api .{0,60}(?:not supported|no longer|unsupported)",
    r"(?:responses|messages|embeddings?) (?:api|endpoint) (?:is )?not (?:supported|available|implemented)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    bad = [s for s in context.with_status(404, 405) if ROUTES.search(s.path)]
    asked, both = context.answer("chat"), False
    if context.probed and asked is not None and asked.status in (404, 405):
        listed, fault = context.answer("models"), context.fault("chat")
        both = listed is not None and listed.status in (404, 405)
        if listed is not None and (listed.ok or both) and not (fault and fault.about_model):
            bad = bad or [s for s in context.statements if s.path.endswith("/completions")][:1]
    if bad:
        yield context.finding(
            bad,
            msg(
                "this server has no route {path} ({status}); what it has is listed at /openapi.json",
                zh="服务器没有路由 {path}（{status}）；它有的路由列在 /openapi.json",
                path=bad[0].path,
                status=bad[0].status,
            ),
            POSSIBLE if both else LIKELY,
        )
    elif hit := context.said(*PATTERNS):
        yield context.finding(
            hit,
            msg(
                "this server does not take that route or method",
                zh="服务器不接受该路由或方法",
            ),
            POSSIBLE,
        )


RULE = Rule(
    code="CLT014",
    name="route-unknown",
    severity=Severity.ERROR,
    summary=msg(
        "This server has no such route, or not for this method.",
        zh="服务器没有这个路由，或不接受这个方法。",
    ),
    check=check,
    cause=Cause.ROUTE_UNKNOWN,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/api_server.py",),
    bad=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /generate HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/responses HTTP/1.1" 404 Not Found\n',
        ),
        Example(
            "unexpected status 405 Method Not Allowed\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "health", "url": "http://127.0.0.1:8000/health", '
            '"status": 200}, {"step": "models", "url": "http://127.0.0.1:8000/v1/models", "status": 404}, {"step": '
            '"chat", "url": "http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 404}]}\n',
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /generate HTTP/1.1" 200 OK\n',
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/responses HTTP/1.1" 200 OK\n',
        ),
    ),
)
