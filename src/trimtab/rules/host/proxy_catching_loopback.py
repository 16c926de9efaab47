"""A proxy variable is set and loopback is not excepted: clients here send local requests to the proxy.

What it does: reads http_proxy, all_proxy and no_proxy in both spellings.
Why it matters: Python's clients, curl and many tools then ask the proxy for http://127.0.0.1 and get its error page
    (502, 503 or HTML).
How to fix: export no_proxy=localhost,127.0.0.1,::1 (and NO_PROXY with the same value).
When to ignore: when all clients run on other machines.
Sources: curl manual (http_proxy, no_proxy); Python's urllib.request.getproxies_environment; httpx documentation,
    environment variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def check(context: HostContext) -> Iterator[Finding]:
    environ = context.record.environ
    name = next((n for n in PROXIES if environ.get(n)), None)
    excepted = ",".join(environ.get(n, "") for n in ("no_proxy", "NO_PROXY")).replace(" ", "").split(",")
    if name is None or "*" in excepted or {"localhost", "127.0.0.1"} <= set(excepted):
        return
    missing = [h for h in ("localhost", "127.0.0.1") if h not in excepted]
    yield Finding(
        msg(
            "{name}={proxy} catches requests to {missing}: export no_proxy=localhost,127.0.0.1,::1",
            zh="{name}={proxy} 会截住发往 {missing} 的请求：export no_proxy=localhost,127.0.0.1,::1",
            name=name,
            proxy=environ[name],
            missing=", ".join(missing),
        )
    )


RULE = Rule(
    code="HST302",
    name="proxy-catching-loopback",
    severity=Severity.WARNING,
    summary=msg(
        "A proxy variable is set and loopback is not excepted: clients here send local requests to the proxy.",
        zh="设置了代理变量而未排除回环地址：本机客户端会把本地请求发给代理。",
    ),
    check=check,
    sources=(
        "https://curl.se/docs/manpage.html",
        "https://www.python-httpx.org/environment_variables/",
    ),
    bad=(
        Example(
            '{"environ": {"http_proxy": "http://proxy.example:3128"}}\n',
        ),
        Example(
            '{"environ": {"ALL_PROXY": "socks5://127.0.0.1:7890", "NO_PROXY": "localhost"}}\n',
        ),
    ),
    good=(
        Example(
            '{"environ": {"http_proxy": "http://proxy.example:3128", "no_proxy": "localhost,127.0.0.1"}}\n',
        ),
        Example(
            '{"environ": {"https_proxy": "http://proxy.example:3128"}}\n',
        ),
    ),
)
