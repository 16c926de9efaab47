"""NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface that this host does not have.

What it does: compares the names in these variables with the host's interfaces.
Why it matters: NCCL or Gloo then finds no interface: "Bootstrap : no socket interface found", or a hang until the
    time-out.
How to fix: name an interface that ip link shows, or unset the variable.
When to ignore: on one rank, which uses neither.
Sources: NCCL documentation, environment variables (NCCL_SOCKET_IFNAME: a prefix, =name exactly, ^name all but);
    torch documentation of Gloo.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    for name in VARIABLES:
        value = record.environ.get(name, "").strip()
        if not value or value.startswith("^") or not record.interfaces:
            continue
        exact = value.startswith("=") or not name.startswith("NCCL")
        wanted = [w.strip() for w in value.removeprefix("=").split(",") if w.strip()]
        if not any(i == w if exact else i.startswith(w) for i in record.interfaces for w in wanted):
            yield Finding(
                msg(
                    "{name}={value} names no interface here; there are {known}",
                    zh="{name}={value} 不是本机的接口；本机有 {known}",
                    name=name,
                    value=value,
                    known=", ".join(record.interfaces),
                ),
                severity=None if record.wanted.ranks > 1 else Severity.WARNING,
            )


RULE = Rule(
    code="HST304",
    name="network-interface-absent",
    severity=Severity.ERROR,
    summary=msg(
        "NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface that this host does not have.",
        zh="NCCL_SOCKET_IFNAME 或 GLOO_SOCKET_IFNAME 指定了本机没有的网络接口。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    bad=(
        Example(
            '{"environ": {"NCCL_SOCKET_IFNAME": "ib0"}, "interfaces": ["lo", "eth0"], "wanted": {"ranks": 2}}\n',
        ),
    ),
    good=(
        Example(
            '{"environ": {"NCCL_SOCKET_IFNAME": "eth"}, "interfaces": ["lo", "eth0"]}\n',
        ),
        Example(
            '{"environ": {"NCCL_SOCKET_IFNAME": "^docker"}, "interfaces": ["lo"]}\n',
        ),
        Example(
            '{"environ": {"GLOO_SOCKET_IFNAME": "lo"}, "interfaces": ["lo", "eth0"]}\n',
        ),
    ),
)
