"""VLLM_HOST_IP is no address of this host.

What it does: compares VLLM_HOST_IP with the addresses of the host's interfaces.
Why it matters: the ranks meet at that address: nobody can listen on it, and initialisation hangs or fails with
    "Cannot assign requested address".
How to fix: set it to an address that ip addr shows, a different one on each node; or unset it on a single host.
When to ignore: on one rank, where it is a warning alone.
Sources: vllm/utils/network_utils.py (get_ip) and vllm/envs.py (VLLM_HOST_IP), vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    value = record.environ.get("VLLM_HOST_IP", "").strip()
    if value and record.addresses and value not in record.addresses and value not in ("0.0.0.0", "localhost"):
        yield Finding(
            msg(
                "VLLM_HOST_IP={value} is no address of this host, which has {known}",
                zh="VLLM_HOST_IP={value} 不是本机地址；本机地址有 {known}",
                value=value,
                known=", ".join(record.addresses),
            ),
            severity=None if record.wanted.ranks > 1 else Severity.WARNING,
        )


RULE = Rule(
    code="HST305",
    name="host-address-not-of-this-host",
    severity=Severity.ERROR,
    summary=msg(
        "VLLM_HOST_IP is no address of this host.",
        zh="VLLM_HOST_IP 不是本机的地址。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/envs.py",),
    bad=(
        Example(
            '{"environ": {"VLLM_HOST_IP": "10.0.0.9"}, "addresses": ["127.0.0.1", "10.0.0.5"], "wanted": {"ranks": '
            "2}}\n",
        ),
    ),
    good=(
        Example(
            '{"environ": {"VLLM_HOST_IP": "10.0.0.5"}, "addresses": ["127.0.0.1", "10.0.0.5"]}\n',
        ),
    ),
)
