"""A web page or a redirect came where JSON was awaited.

What it does: reads a page in the answer, a redirect, or a JSON parser that stumbles over "<" or over an empty text.
Why it matters: the base URL leads to a front end, a log-in page or a proxy's page: clients then fail with
    "Unexpected token '<'" or "Expecting value: line 1 column 1".
How to fix: make BASE/models and BASE/chat/completions routes of the server: curl BASE/models must give JSON; give
    the server's own host, port and /v1.
When to ignore: never: no answer is there.
Sources: ECMAScript JSON.parse (V8, SpiderMonkey), Python's json, Go's encoding/json; aiohttp ContentTypeError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.api import is_html
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, ClientContext
from trimtab.rules.client.statements import Statement
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"unexpected token '?<",
    r"<!doctype|<html|<head>|<title>",
    r"unexpected mimetype|content[- ]type:? ?'?text/html|ContentTypeError|mimetype: ?'?text/html",
    r"invalid character '<'",
    r"JSON\.parse: unexpected character",
    r"JSON Parse error: Unrecognized token '<'",
    r"'str' object has no attribute 'choices'",
    r"expected value at line 1 column 1|Expecting value: line 1 column 1|expected JSON but (?:got|received) HTML",
)
WEAK = (
    r"JSONDecodeError",
    r"Unexpected end of JSON input",
    r"is not valid JSON",
    r"\b30[12378] (?:Moved|Found|See Other|Temporary|Permanent)",
)
BESIDE = ("root", "health", "version", "proxied", "generate")


def _message(location: str) -> Message:
    if location:
        return msg(
            "a redirect to {location} came instead of JSON: give the server's own address",
            zh="得到的是到 {location} 的重定向，而不是 JSON：请使用服务器自己的地址",
            location=location,
        )
    return msg(
        "a web page came instead of JSON: the base URL leads to a front end or proxy, not to the API",
        zh="得到的是网页而不是 JSON：base URL 指向了前端或代理，而不是 API",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    for answer in context.evidence.answers:
        if answer.step in BESIDE or answer.status in (502, 503, 504):
            continue
        page = answer.kind.startswith("text/html") or is_html(answer.body.encode())
        if page or answer.location:
            yield context.finding(answer, _message(answer.location), LIKELY)
            return
    hit, confidence = context.said(*PATTERNS), POSSIBLE if context.with_status(502, 503, 504) else LIKELY
    if hit is None:
        hit, confidence = context.said(*WEAK), POSSIBLE
    if hit is not None and not context.probed and not _read_by_server(hit.statement):
        yield context.finding(hit, _message(""), confidence)


def _read_by_server(statement: Statement) -> bool:
    """Whether vLLM itself read what was no JSON: a request that it refused, or text that the model wrote."""
    return statement.status in (400, 422) or _LOGGED.search(statement.text) is not None


_LOGGED = re.compile(r"\b(?:ERROR|WARNING) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:\[\S+\.py:\d+\]|\S+\.py:\d+\])")


RULE = Rule(
    code="CLT025",
    name="html-instead-of-json",
    severity=Severity.ERROR,
    summary=msg(
        "A web page or a redirect came where JSON was awaited.",
        zh="应返回 JSON 之处返回了网页或重定向。",
    ),
    check=check,
    cause=Cause.HTML_INSTEAD_OF_JSON,
    sources=("https://developer.mozilla.org/en-US/docs/Web/JavaScript/Reference/Errors/JSON_bad_parse",),
    bad=(
        Example(
            "SyntaxError: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON\n",
        ),
        Example(
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "kind": "text/html; '
            'charset=utf-8", "body": "<!doctype html><html></html>"}]}\n',
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "kind": '
            '"application/json", "body": "{}"}]}\n',
        ),
    ),
)
