"""The host's name does not resolve, or nothing comes through to it.

What it does: reads failures of name resolution, missing routes and connections that time out.
Why it matters: a misspelt name, a name of another network (a container's, a cluster's), a firewall, or a server
    that listens on loopback alone.
How to fix: resolve the name where the client runs (getent hosts NAME); start the server with --host 0.0.0.0 and a
    key, publish the port, open the firewall.
When to ignore: when the network comes back by itself.
Sources: getaddrinfo(3); connect(2) (EHOSTUNREACH, ENETUNREACH, ETIMEDOUT); texts of curl, Node.js and Go.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

NAMES = (
    r"name or service not known|nodename nor servname|name does not resolve|temporary failure in name resolution",
    r"\bENOTFOUND|EAI_AGAIN|getaddrinfo failed|\[Errno (?:-[235]|11001)\]",
    r"could not resolve host\b|no such host|NameResolutionError|failed to resolve|dns error",
)
ROUTES = (
    r"no route to host|EHOSTUNREACH|ENETUNREACH|network is unreachable|host is down|EHOSTDOWN",
    r"connect timeout|ConnectTimeout|connection timed out|UND_ERR_CONNECT_TIMEOUT|\bconnect ETIMEDOUT|connection "
    r"attempt failed",
)


def check(context: ClientContext) -> Iterator[Finding]:
    answer = context.troubled(Trouble.DNS, Trouble.UNREACHABLE, Trouble.CONNECT_TIMEOUT)
    shown = answer if answer is not None else context.said(*NAMES, *ROUTES)
    if shown is None:
        return
    named = answer.trouble is Trouble.DNS if answer is not None else context.said(*NAMES) is not None
    yield context.finding(
        shown,
        msg("the host's name does not resolve where the client runs", zh="客户端所在处无法解析该主机名")
        if named
        else msg(
            "nothing comes through to that host: a firewall, an unpublished port, or a server bound to loopback",
            zh="到该主机的网络不通：防火墙、未发布的端口，或服务器只监听回环地址",
        ),
        SURE,
    )


RULE = Rule(
    code="CLT023",
    name="host-unreachable",
    severity=Severity.ERROR,
    summary=msg(
        "The host's name does not resolve, or nothing comes through to it.",
        zh="主机名无法解析，或网络不通。",
    ),
    check=check,
    cause=Cause.HOST_UNREACHABLE,
    sources=("https://man7.org/linux/man-pages/man3/getaddrinfo.3.html",),
    bad=(
        Example(
            "httpx.ConnectError: [Errno -2] Name or service not known\n",
        ),
        Example(
            "Error: getaddrinfo ENOTFOUND vllm-server\n",
        ),
        Example(
            "httpx.ConnectTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "connect", "url": "http://vllm:8000/v1", '
            '"trouble": "dns"}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
    ),
)
