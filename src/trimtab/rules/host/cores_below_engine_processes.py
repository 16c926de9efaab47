"""Fewer CPU cores may be used here than the engine has busy processes.

What it does: compares the cores of this process, container quota included, with 2 + one for each GPU.
Why it matters: the engine core polls without rest; starved of a core it slows every request, and start-up may time
    out.
How to fix: raise the container's CPU limit, or lower the parallel sizes.
When to ignore: with very light load.
Sources: docs/configuration/optimization.md (CPU resources for GPU deployments), vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    cores, need = record.processor.cores, 2 + record.wanted.cards
    if record.on_gpu and record.wanted.cards and 0 < cores < need:
        yield Finding(
            msg(
                "{cores:g} CPU cores may be used; the server, the engine core and {cards} workers want {need}",
                zh="可用 {cores:g} 个 CPU 核；服务器、引擎核心与 {cards} 个 worker 需要 {need} 个",
                cores=cores,
                cards=record.wanted.cards,
                need=need,
            ),
            evidence=(f"cores of the host: {record.processor.cores_of_host}",),
        )


RULE = Rule(
    code="HST104",
    name="cores-below-engine-processes",
    severity=Severity.WARNING,
    summary=msg(
        "Fewer CPU cores may be used here than the engine has busy processes.",
        zh="可用的 CPU 核少于引擎的繁忙进程数。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/configuration/optimization.md",),
    bad=(
        Example(
            '{"processor": {"cores": 2.0, "cores_of_host": 64}, "wanted": {"cards": 4, "ranks": 4}}\n',
        ),
    ),
    good=(
        Example(
            '{"processor": {"cores": 16.0, "cores_of_host": 16}, "wanted": {"cards": 4, "ranks": 4}}\n',
        ),
        Example(
            '{"processor": {"cores": 2.0}, "wanted": {"on_cpu": true}}\n',
        ),
    ),
)
