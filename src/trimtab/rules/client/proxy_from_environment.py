"""A proxy from the environment stands between the client and the server.

What it does: reads errors of proxies; the probe asks directly and as the environment says, and compares.
Why it matters: http_proxy and its likes send requests for 127.0.0.1 and for the local network to a proxy that
    cannot reach them: 502, 503, 403 or its own page.
How to fix: export no_proxy=localhost,127.0.0.1,::1 and the server's host (NO_PROXY too), or unset the proxy for the
    client.
When to ignore: when the server is reached through the proxy on purpose.
Sources: curl manual (no_proxy); httpx, requests and Go net/http on proxy variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"could not resolve proxy|ProxyError|unable to connect to proxy|cannot connect to proxy|proxyconnect|ERR_PROXY|"
    r"ERR_TUNNEL",
    r"tunnel connection failed|CONNECT tunnel failed",
    r"407 Proxy Authentication|proxy authentication required",
    r"\bsquid\b|privoxy|X-Squid",
    r"'socksio' package is not installed|unknown scheme for proxy|Missing dependencies for SOCKS|"
    r"Proxy URL had (?:no|unsupported) scheme|Proxy protocol must be either",
    r"Uses proxy env variable",
)
LOOPBACK = re.compile(r"//(?:127\.|localhost|\[::1\])")


def check(context: ClientContext) -> Iterator[Finding]:
    proxied, direct = context.answer("proxied"), context.answer("models below /v1") or context.answer("models")
    if context.probed:
        if (
            proxied is not None
            and not proxied.ok
            and proxied.status not in (401, 404)
            and direct is not None
            and direct.status
        ):
            names = ", ".join(f"{name}={value}" for name, value in context.evidence.proxies.items())
            yield context.finding(
                (proxied, direct),
                msg(
                    "directly the server answers ({direct}), through {names} it does not ({came}): set no_proxy",
                    zh="直接访问时服务器有应答（{direct}），经 {names} 则没有（{came}）：请设置 no_proxy",
                    direct=direct.status,
                    names=names,
                    came=proxied.status or proxied.trouble,
                ),
                SURE,
            )
        return
    hit = context.said(*PATTERNS)
    local = [s for s in context.with_status(502, 503, 403) if LOOPBACK.search(s.url)]
    if hit is not None or local:
        yield context.finding(
            hit if hit is not None else local,
            msg(
                "a proxy from the environment answers instead of the server: set no_proxy for its host",
                zh="应答的是环境变量中的代理而不是服务器：请为其主机设置 no_proxy",
            ),
            LIKELY if hit is not None else POSSIBLE,
        )


RULE = Rule(
    code="CLT030",
    name="proxy-from-environment",
    severity=Severity.ERROR,
    summary=msg(
        "A proxy from the environment stands between the client and the server.",
        zh="环境变量里的代理挡在客户端与服务器之间。",
    ),
    check=check,
    cause=Cause.PROXY_ENVIRONMENT,
    sources=("https://curl.se/docs/manpage.html",),
    bad=(
        Example(
            "requests.exceptions.ProxyError: HTTPConnectionPool(host='127.0.0.1', port=7890): Unable to connect to "
            "proxy\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "proxies": {"http_proxy": "http://proxy.example:3128"}, '
            '"answers": [{"step": "models", "url": "http://127.0.0.1:8000/v1/models", "status": 200}, {"step": '
            '"proxied", "url": "http://127.0.0.1:8000/v1/models", "status": 503}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
    ),
)
