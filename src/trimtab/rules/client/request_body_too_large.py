"""The request is larger than a proxy lets through.

What it does: reads the status 413 and the pages that say the same.
Why it matters: nginx lets 1 MB through unless told otherwise: images as base64 and long histories are larger. vLLM
    itself sets no such limit.
How to fix: raise client_max_body_size (nginx) or the gateway's own limit, or send images by URL.
When to ignore: never: the request is not served.
Sources: RFC 9110 section 15.5.14; nginx documentation (client_max_body_size).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (r"request entity too large|payload too large|content too large|client intended to send too large body",)


def check(context: ClientContext) -> Iterator[Finding]:
    bad = context.with_status(413)
    hit = context.said(*PATTERNS)
    if bad or hit is not None:
        shown = bad if bad else (hit,)
        yield context.finding(
            [part for part in shown if part is not None],
            msg(
                "the request is larger than the proxy lets through: client_max_body_size of nginx, or its like",
                zh="请求体大于代理允许的大小：nginx 的 client_max_body_size 或类似设置",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT061",
    name="request-body-too-large",
    severity=Severity.ERROR,
    summary=msg(
        "The request is larger than a proxy lets through.",
        zh="请求体大于代理允许的大小。",
    ),
    check=check,
    cause=Cause.REQUEST_BODY_TOO_LARGE,
    sources=("https://www.rfc-editor.org/rfc/rfc9110#section-15.5.14",),
    bad=(
        Example(
            "<head><title>413 Request Entity Too Large</title></head>\n",
        ),
    ),
    good=(
        Example(
            "openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}\n",
        ),
    ),
)
