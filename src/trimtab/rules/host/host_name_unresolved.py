"""This host's own name leads to no address.

What it does: looks the host's name up as Gloo does.
Why it matters: Gloo binds to the address of the host's name: with several ranks initialisation fails ("Unable to
    resolve hostname") or takes the wrong interface.
How to fix: add the name to /etc/hosts, or set GLOO_SOCKET_IFNAME to an interface.
When to ignore: with one rank, or where GLOO_SOCKET_IFNAME is set.
Sources: torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (createDefaultDevice); hosts(5).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    if record.name_resolves is False and record.wanted.ranks > 1 and not record.environ.get("GLOO_SOCKET_IFNAME"):
        yield Finding(
            msg(
                "this host's name leads to no address, and {ranks} ranks meet by it: add it to /etc/hosts",
                zh="本机主机名解析不到地址，而 {ranks} 个 rank 靠它汇合：请写入 /etc/hosts",
                ranks=record.wanted.ranks,
            )
        )


RULE = Rule(
    code="HST306",
    name="host-name-unresolved",
    severity=Severity.WARNING,
    summary=msg(
        "This host's own name leads to no address.",
        zh="本机的主机名解析不到地址。",
    ),
    check=check,
    sources=("https://github.com/pytorch/pytorch/blob/v2.9.1/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",),
    bad=(
        Example(
            '{"name_resolves": false, "wanted": {"ranks": 2}}\n',
        ),
    ),
    good=(
        Example(
            '{"name_resolves": true, "wanted": {"ranks": 2}}\n',
        ),
        Example(
            '{"name_resolves": false}\n',
        ),
    ),
)
