"""The ranks never meet: wrong interface, address or firewall, or a node that is not there.

What it does: recognises Gloo's, the TCP store's and NCCL's failures to connect.
Why it matters: Each rank tells the others an address; a host that resolves to its loopback, or a second node that got
    none of the variables, tells a wrong one.
How to fix: set GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and VLLM_HOST_IP on every node (in Ray: on its start, not on
    the driver's command line), open the ports, and check that --master-addr is reached from all.
When to ignore: where an earlier error of a rank explains why it did not come.
Sources: gloo/transport/tcp/pair.cc; torch/csrc/distributed/c10d/TCPStore.cpp; vllm/v1/engine/core_client.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Gloo connect\w* failed|Unable to find address for: \w+|no socket interface found|[Cc]onnectFullMesh",
        r"client socket has timed out after (?P<ms>\d+)|DistStoreError.*(?P<joined>\d+/\d+) clients "
        r"joined|[Tt]imed out after \d+ seconds waiting for clients",
        r"Every node should have a unique IP address|Barrier (?:departure )?timed out|DP master node .*missing or dead",
        r"DistNetworkError(?!.*EADDRINUSE)|Bootstrap : no socket|[Cc]onnection (?:closed "
        r"by|refused).*(?:peer|TCPStore|master)|No route to host",
    )
    if hit is None:
        return
    loopback = context.first(r"Using the loopback address as fallback|resolve hostname", kinds=EVERYWHERE)
    yield context.finding(
        [hit, *([loopback] if loopback else [])],
        msg(
            "the ranks do not reach each other{loopback}: set GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and "
            "VLLM_HOST_IP on every "
            "node, and open the ports between them",
            zh="各进程无法互相连接{loopback}：请在每个节点设置 GLOO_SOCKET_IFNAME、NCCL_SOCKET_IFNAME 和 "
            "VLLM_HOST_IP，并开放端口",
            loopback=msg(" (a host took its loopback address)", zh="（主机使用了回环地址）") if loopback else "",
        ),
        LIKELY,
    )


RULE = Rule(
    code="LOG145",
    name="ranks-never-meet",
    severity=Severity.ERROR,
    summary=msg(
        "The ranks never meet: wrong interface, address or firewall, or a node that is not there.",
        zh="各进程无法会合：网卡、地址或防火墙有误，或节点缺失。",
    ),
    check=check,
    cause=Cause.RENDEZVOUS_FAILED,
    sources=(
        "https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        "https://docs.pytorch.org/docs/stable/distributed.html",
    ),
    bad=(
        Example(
            "RuntimeError: Gloo connectFullMesh failed with "
            "[../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error\n",
            at="line 1: RuntimeError: Gloo",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
