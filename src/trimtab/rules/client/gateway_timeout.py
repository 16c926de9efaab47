"""A gateway gave up on the server: it waits less long than the answer takes, or the server is gone.

What it does: reads 504, 502 and 524, and the pages and log lines of gateways.
Why it matters: a proxy waits 60 s by default; a long answer that is not streamed, or a queue, takes longer. A 502
    also comes where the server is dead or still loading.
How to fix: stream the answer, raise the gateway's read time-out (proxy_read_timeout), lower max_tokens; with 502
    look first whether the server answers directly.
When to ignore: never: the answer is lost.
Sources: RFC 9110 sections 15.6.3 and 15.6.5; nginx documentation (proxy_read_timeout); Cloudflare error 524.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"gateway time-?out|upstream (?:request )?time(?:d )?out|a timeout occurred",
    r"bad gateway|no live upstreams|connect\(\) failed .{0,60}upstream",
)


def check(context: ClientContext) -> Iterator[Finding]:
    bad = context.with_status(504, 502, 524)
    hit = context.said(*PATTERNS)
    if not bad and hit is None:
        return
    late = any(s.status in (504, 524) for s in bad) or (hit is not None and "time" in hit.match.group(0).lower())
    shown = bad if bad else (hit,)
    yield context.finding(
        [part for part in shown if part is not None],
        msg(
            "the gateway waited less long than the answer takes: stream it, or raise the gateway's read time-out",
            zh="网关的等待时间短于回答所需：请使用流式输出，或提高网关的读超时",
        )
        if late
        else msg(
            "the gateway got no answer from the server: it is dead, still loading, or ended the connection",
            zh="网关没有得到服务器的应答：服务器已死、仍在加载，或断开了连接",
        ),
        SURE if late else LIKELY,
    )


RULE = Rule(
    code="CLT033",
    name="gateway-timeout",
    severity=Severity.ERROR,
    summary=msg(
        "A gateway gave up on the server: it waits less long than the answer takes, or the server is gone.",
        zh="网关放弃了服务器：等待时间短于回答所需，或服务器已不在。",
    ),
    check=check,
    cause=Cause.GATEWAY_TIMEOUT,
    sources=("https://www.rfc-editor.org/rfc/rfc9110#section-15.6.5",),
    bad=(
        Example(
            "<head><title>504 Gateway Time-out</title></head>\n",
        ),
        Example(
            "openai.InternalServerError: Error code: 502 - Bad Gateway\n",
        ),
        Example(
            "upstream timed out (110: Connection timed out) while reading response header from upstream\n",
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
    ),
)
