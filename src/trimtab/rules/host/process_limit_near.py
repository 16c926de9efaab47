"""Few more processes and threads may be started here.

What it does: compares ulimit -u and the container's pids.max with the threads that run now.
Why it matters: torch, OpenBLAS and NCCL start many threads for each rank: the start fails with "can't start new
    thread" or "Resource temporarily unavailable".
How to fix: raise it: ulimit -u, LimitNPROC= and TasksMax= in the unit, --pids-limit for the container.
When to ignore: when other programs of this user end before.
Sources: getrlimit(2) (RLIMIT_NPROC); kernel documentation of the pids controller.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

EACH = 256  # an API server, an engine core and a worker with the threads of torch, NCCL and the tokenizer


def check(context: HostContext) -> Iterator[Finding]:
    limits = context.record.limits
    bounds = [n for n in (limits.processes, limits.container_processes) if n is not None]
    if not bounds:
        return
    left, need = min(bounds) - (limits.processes_now or 0), EACH * max(1, context.record.wanted.ranks)
    if left < need:
        yield Finding(
            msg(
                "{left} more threads may be started (limit {limit}); {ranks} ranks want about {need}",
                zh="还能启动 {left} 个线程（上限 {limit}）；{ranks} 个 rank 约需 {need} 个",
                left=max(0, left),
                limit=min(bounds),
                ranks=max(1, context.record.wanted.ranks),
                need=need,
            )
        )


RULE = Rule(
    code="HST404",
    name="process-limit-near",
    severity=Severity.WARNING,
    summary=msg(
        "Few more processes and threads may be started here.",
        zh="本机还能启动的进程与线程所剩无几。",
    ),
    check=check,
    sources=("https://docs.kernel.org/admin-guide/cgroup-v2.html",),
    bad=(
        Example(
            '{"limits": {"container_processes": 100, "processes_now": 40}}\n',
        ),
        Example(
            '{"limits": {"processes": 256, "processes_now": 200}}\n',
        ),
    ),
    good=(
        Example(
            '{"limits": {"processes": 96365, "processes_now": 400}}\n',
        ),
        Example(
            '{"limits": {}}\n',
        ),
    ),
)
