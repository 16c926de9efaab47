"""The KV cache holds too few of the requests that come: they are preempted.

What it does: reads V0's and V1's warnings of preemption.
Why it matters: A preempted request is computed again from its beginning; under load the server does the work twice,
    and answers slow down or never end.
How to fix: lower --max-num-seqs so that those that run fit, or leave more for the KV cache: a shorter
    --max-model-len, --kv-cache-dtype fp8, more cards.
When to ignore: when it happens now and then under a peak.
Sources: vllm/core/scheduler.py (_preempt), vLLM 0.6.6; vllm/v1/core/sched/scheduler.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

COUNT = r"total_num_cumulative_preemption=(?P<count>\d+)"


def check(context: LogContext) -> Iterator[Finding]:
    hits = context.find(
        r"(?i)is preempted by|preempt(?:ed|ion)s?\b.*(?:not enough|KV cache|recompute|space)",
        EntryKind.WARNING,
        *TROUBLE,
    )
    count = max((int(h.number("count")) for h in context.find(COUNT, EntryKind.WARNING, *TROUBLE)), default=0)
    if not hits:
        return
    yield context.finding(
        hits,
        msg(
            "requests were preempted for lack of KV cache ({count} told): lower --max-num-seqs or make room "
            "in the KV cache",
            zh="KV 缓存不足，请求被抢占（日志记录 {count} 次）：请降低 --max-num-seqs 或增加 KV 缓存",
            count=max(count, sum(h.entry.repeats for h in hits)),
        ),
        LIKELY,
    )


RULE = Rule(
    code="LOG010",
    name="requests-preempted-again-and-again",
    severity=Severity.WARNING,
    summary=msg(
        "The KV cache holds too few of the requests that come: they are preempted.",
        zh="KV 缓存容纳不下当前的请求数：请求被反复抢占。",
    ),
    check=check,
    cause=Cause.KV_TOO_SMALL_FOR_LOAD,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/core/scheduler.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO:     Application startup complete.\n"
            "WARNING 11-30 03:43:16 [scheduler.py:1057] Sequence group cmpl-1 is preempted by "
            "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect "
            "the end-to-end performance. Increase gpu_memory_utilization or tensor_parallel_size to "
            "provide more KV cache memory. total_num_cumulative_preemption=51\n",
            at="line 2: Sequence group",
        ),
    ),
    good=(Example("(APIServer pid=1) INFO:     Application startup complete.\n"),),
)
