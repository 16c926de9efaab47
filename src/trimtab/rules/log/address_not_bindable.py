"""The address cannot be bound: not this host's, or not permitted.

What it does: reads the system's refusal to bind an address that is no interface's, a name that does not resolve, or a
    port below 1024.
Why it matters: --host names an interface of this machine, not the address by which clients reach it from outside;
    ports below 1024 need a privilege.
How to fix: --host 0.0.0.0 for all interfaces, 127.0.0.1 for this machine only; a port above 1023.
When to ignore: never; the server does not listen.
Sources: bind(2), errno 13 and 99; vllm/entrypoints/openai/api_server.py (create_server_socket).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Cc](?:annot|an't) assign requested address",
    r"(?:PermissionError: )?\[Errno 13\] (?:Permission denied$|error while attempting to bind)",
    (r"(?:gaierror|Name or service not known|nodename nor servname|Temporary failure in name " r"resolution).{0,80}$"),
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(SAYS[0], r"while attempting to bind on address \([^)]*\): permission denied")
    if hit is None:
        bound = context.framed(BIND)
        if bound is None or not re.search("|".join(SAYS[1:]), bound.entry.text):
            return
        hit = bound
    host, port = context.facts.args.get("host"), context.facts.args.get("port")
    message = msg(
        "host {host} port {port} cannot be bound: {said}",
        zh="无法绑定主机 {host} 端口 {port}：{said}",
        host=host or "0.0.0.0",
        port=port or "8000",
        said=hit.entry.text[:160],
    )
    yield context.finding(hit, message, SURE)


BIND = r"create_server_socket|\.bind\(|in bind\b|getaddrinfo"


RULE = Rule(
    code="LOG402",
    name="address-not-bindable",
    severity=Severity.ERROR,
    summary=msg(
        "The address cannot be bound: not this host's, or not permitted.", zh="无法绑定地址：不属于本机或没有权限。"
    ),
    check=check,
    cause=Cause.ADDRESS_NOT_BINDABLE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",),
    bad=(Example("OSError: [Errno 99] Cannot assign requested address\n"),),
    good=(Example("PermissionError: [Errno 13] Permission denied: '/.cache'\n"),),
)
