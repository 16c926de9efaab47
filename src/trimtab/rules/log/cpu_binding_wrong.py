"""Threads cannot be bound as asked, or there are more ranks than NUMA nodes.

What it does: reads the CPU engine's refusal of more ranks than nodes and of cores that are not there.
Why it matters: each rank is bound to the cores of one NUMA node; a container may be allowed fewer than the machine
    has.
How to fix: lower --tensor-parallel-size to the number of nodes (`lscpu`), or name the cores:
    VLLM_CPU_OMP_THREADS_BIND='0-31|32-63', or nobind.
When to ignore: never; the start ended.
Sources: vllm/utils/ompmultiprocessing.py, vllm/v1/worker/cpu_worker.py, vLLM 0.8 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"(?:No|Not) enough allowed NUMA nodes to bind threads",
    r"VLLM_CPU_OMP_THREADS_BIND|VLLM_CPU_NUM_OF_RESERVED_CPU",
    r"doesn't support auto CPU binding|(?:get_mempolicy|set_mempolicy|mbind|migrate_pages)\S*: Operation not permitted",
    (
        r"sched_setaffinity|numa_(?:node|migrate|parse)\w*.{0,60}(?:fail|error|invalid)|Invalid (?:cpu|core) "
        r"(?:id|list)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS, kinds=(EntryKind.EXCEPTION, EntryKind.ERROR))
    if hit is None:
        framed = context.framed(BINDING)
        if framed is None or CONSEQUENCE.match(framed.entry.text):
            return
        hit = framed
    message = msg(
        "threads cannot be bound to cores or NUMA nodes as asked: {said}",
        zh="无法按要求把线程绑定到核心或 NUMA 节点：{said}",
        said=hit.entry.text[:240],
    )
    yield context.finding(hit, message, SURE)


BINDING = r"ompmultiprocessing\.py.* in (?!run|__enter__)|init_cpu_threads_env"
CONSEQUENCE = re.compile(r"(?:RuntimeError: (?:Engine core|Worker)|Exception: WorkerProc|EOFError|KeyboardInterrupt)")


RULE = Rule(
    code="LOG514",
    name="cpu-binding-wrong",
    severity=Severity.ERROR,
    summary=msg(
        "Threads cannot be bound as asked, or there are more ranks than NUMA nodes.",
        zh="无法按要求绑定线程，或进程数多于 NUMA 节点。",
    ),
    check=check,
    cause=Cause.CPU_BINDING_WRONG,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/cpu_worker.py",),
    bad=(
        Example(
            "AssertionError: Not enough allowed NUMA nodes to bind threads of 3 local CPUWorkers. Allowed "
            "NUMA nodes are [0]. Please try to bind threads manually or decrease DP/TP/PP.\n"
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [ompmultiprocessing.py:185] VLLM_CPU_OMP_THREADS_BIND='auto', "
            "auto_setup=True, skip_setup=False\n"
        ),
    ),
)
