"""The path holds a slash twice.

What it does: reads the paths of failed requests.
Why it matters: the base URL ends with a slash and the client adds one: /v1//models is another path than /v1/models,
    and no route.
How to fix: end the base URL without a slash: http://HOST:PORT/v1.
When to ignore: behind a proxy that merges slashes.
Sources: Starlette's router, which matches the path as it is; RFC 3986 section 3.3 (an empty segment is a segment).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DOUBLED = re.compile(r"[^:]//|^//")


def check(context: ClientContext) -> Iterator[Finding]:
    bad = [s for s in context.statements if DOUBLED.search(s.path) and (s.status is None or s.status >= 300)]
    if bad:
        yield context.finding(
            bad,
            msg(
                "the path {path} holds a slash twice: end the base URL without one",
                zh="路径 {path} 有两个连续的斜杠：base URL 末尾不要带斜杠",
                path=bad[0].path,
            ),
            SURE,
        )


RULE = Rule(
    code="CLT013",
    name="base-url-with-double-slash",
    severity=Severity.ERROR,
    summary=msg(
        "The path holds a slash twice.",
        zh="路径里有两个连续的斜杠。",
    ),
    check=check,
    cause=Cause.PATH_SLASH_DOUBLED,
    sources=("https://www.rfc-editor.org/rfc/rfc3986#section-3.3",),
    bad=(
        Example(
            'INFO:     172.18.0.3:40012 - "GET /v1//models HTTP/1.1" 404 Not Found\n',
        ),
    ),
    good=(
        Example(
            'INFO:     172.18.0.3:40012 - "GET /v1/models HTTP/1.1" 200 OK\n',
        ),
    ),
)
