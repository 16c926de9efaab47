"""A proxy keeps the stream back and hands it on in lumps.

What it does: counts in how many pieces the events of a stream arrive, and looks for a proxy's header.
Why it matters: the user sees nothing, then everything: the first token seems to take as long as the whole answer,
    and clients time out.
How to fix: in nginx both proxy_buffering off and proxy_http_version 1.1 (proxy_set_header Connection ""); else the
    proxy's own switch for event streams.
When to ignore: when answers are not streamed to people.
Sources: nginx documentation, ngx_http_proxy_module (proxy_buffering, proxy_http_version, X-Accel-Buffering).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

MANY, LONG_S = 8, 1.0
PROXY = re.compile(r"nginx|cloudflare|envoy|apache|caddy|traefik|haproxy|gateway", re.IGNORECASE)
PATTERNS = (r"upstream response is buffered to a temporary file",)


def check(context: ClientContext) -> Iterator[Finding]:
    stream = context.answer("stream")
    if stream is not None and stream.ok and stream.events >= MANY and stream.lumps <= stream.events // 4:
        late = stream.first_s is not None and stream.seconds > LONG_S and stream.first_s > 0.8 * stream.seconds
        behind = PROXY.search(stream.server) is not None
        if late or behind:
            yield context.finding(
                stream,
                msg(
                    "{events} events of the stream came in {lumps} pieces, the first after {first:.1f} of "
                    "{all:.1f} s: a "
                    "proxy buffers",
                    zh="流的 {events} 个事件分 {lumps} 批到达，第一批在 {all:.1f} 秒中的第 {first:.1f} 秒："
                    "有代理在缓存",
                    events=stream.events,
                    lumps=stream.lumps,
                    first=stream.first_s or 0.0,
                    all=stream.seconds,
                ),
                LIKELY if behind else POSSIBLE,
            )
    elif hit := context.said(*PATTERNS):
        yield context.finding(
            hit,
            msg(
                "a proxy keeps the stream back: proxy_buffering off and HTTP/1.1 to the upstream",
                zh="代理缓存了流：请设 proxy_buffering off，并对上游使用 HTTP/1.1",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT031",
    name="stream-buffered-by-proxy",
    severity=Severity.WARNING,
    summary=msg(
        "A proxy keeps the stream back and hands it on in lumps.",
        zh="代理缓存了流式输出，成批才转发。",
    ),
    check=check,
    cause=Cause.PROXY_BUFFERING,
    sources=("https://nginx.org/en/docs/http/ngx_http_proxy_module.html",),
    bad=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "server": '
            '"nginx/1.27.0", "events": 40, "lumps": 1, "first_s": 4.0, "seconds": 4.1}]}\n',
        ),
        Example(
            "error: an upstream response is buffered to a temporary file /var/cache/nginx/proxy_temp/1\n",
        ),
    ),
    good=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "server": "uvicorn", '
            '"events": 40, "lumps": 38, "first_s": 0.2, "seconds": 4.1}]}\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "server": "uvicorn", '
            '"events": 8, "lumps": 1, "first_s": 0.01, "seconds": 0.02}]}\n',
        ),
    ),
)
