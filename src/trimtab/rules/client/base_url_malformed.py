"""The base URL is no URL that a request can be sent to.

What it does: reads what HTTP libraries say of a URL without scheme, with a broken port or with characters that no
    URL has.
Why it matters: localhost:8000/v1 without http:// is read as a scheme of its own; a missing slash makes a port of
    8000v1.
How to fix: write it whole: http://HOST:PORT/v1.
When to ignore: never: no request is sent.
Sources: RFC 3986 section 3; texts of httpx, requests, undici and reqwest.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"missing an? ['\"]https?://|unsupported protocol ['\"]\S|UnsupportedProtocol",
    r"No connection adapters were found|Invalid(?:URL|Schema)\b(?!: Missing dependencies)|"
    r"MissingSchema|No scheme supplied|No host supplied",
    r"Failed to parse URL|ERR_INVALID_URL|Only absolute URLs are supported|invalid port|relative URL without a "
    r"base|unsupported protocol scheme",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the base URL is malformed: write it whole, as http://HOST:PORT/v1",
                zh="base URL 格式错误：请写完整，如 http://HOST:PORT/v1",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT017",
    name="base-url-malformed",
    severity=Severity.ERROR,
    summary=msg(
        "The base URL is no URL that a request can be sent to.",
        zh="base URL 不是可以发送请求的 URL。",
    ),
    check=check,
    cause=Cause.BASE_URL_MALFORMED,
    sources=("https://www.rfc-editor.org/rfc/rfc3986#section-3",),
    bad=(
        Example(
            "httpx.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.\n",
        ),
        Example(
            "requests.exceptions.InvalidSchema: No connection adapters were found for 'localhost:8000/v1/models'\n",
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
    ),
)
