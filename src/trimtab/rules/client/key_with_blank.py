"""The key holds a blank, a line end or quotation marks.

What it does: looks at the shape of the key that was sent, and for clients that refuse such a header themselves.
Why it matters: a blank or quote copied along makes another key of it (401), or a header that HTTP libraries refuse
    to send.
How to fix: copy the key again without what stands around it; in .env files leave the quotes out, and mind the line
    end of echo.
When to ignore: never: the request is not served.
Sources: RFC 9110 section 5.5 (field values); h11 and undici, which refuse such values; Docker's env-file, which
    keeps quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"illegal header value b?['\"](?:Bearer [^\s'\"]|(?!Bearer)\S)",
    r"invalid (?:header value|character in header content|leading whitespace, reserved character\(s\), or return "
    r"character\(s\) in header value)",
    r"header value must not contain",
    r"ERR_INVALID_CHAR",
    r"'(?:ascii|latin-1)' codec can't encode character.{0,160}(?:header|Bearer|api_key)",
    r"failed to parse header value",
    r"Bearer (?:[\"'`]\w|%22|&quot;| \w)",
    r"net/http: invalid header field value",
)


def _message() -> Message:
    return msg(
        "the key holds a blank, a line end, quotation marks or the word Bearer: copy it again without them",
        zh="密钥含有空格、换行、引号或 Bearer 一词：请去掉它们重新复制",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    key = context.evidence.key
    if context.probed:
        refused = next((a for a in context.evidence.answers if a.status in (401, 403)), None)
        stripped = context.answer("key stripped")
        if key is not None and refused is not None and (key.has_blank or key.has_quotes or key.has_scheme):
            yield context.finding(refused, _message(), SURE if stripped is not None and stripped.ok else LIKELY)
        return
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(hit, _message(), SURE)
    elif (hit := context.said(r"'(?:ascii|latin-1)' codec can't encode")) and context.said(r"headers?\b"):
        yield context.finding(hit, _message(), LIKELY)


RULE = Rule(
    code="CLT003",
    name="key-with-blank",
    severity=Severity.ERROR,
    summary=msg(
        "The key holds a blank, a line end or quotation marks.",
        zh="密钥里有空格、换行或引号。",
    ),
    check=check,
    cause=Cause.KEY_WITH_BLANK,
    sources=("https://www.rfc-editor.org/rfc/rfc9110#section-5.5",),
    bad=(
        Example(
            "httpx.LocalProtocolError: Illegal header value b'Bearer sk-local-123\\n'\n",
        ),
        Example(
            'TypeError: Invalid character in header content ["Authorization"]\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "key": {"has_quotes": true, "length": 10}, "answers": [{"step": '
            '"chat", "url": "http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 401, "body": '
            '"{\\"error\\":\\"Unauthorized\\"}"}, {"step": "key stripped", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.LocalProtocolError: Illegal header value b'Bearer '\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "key": {"length": 8}, "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 401}]}\n',
        ),
    ),
)
