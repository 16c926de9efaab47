"""A collective did not end in its time.

What it does: reads operation and time from PyTorch's watchdog, and Gloo's likes.
Why it matters: One rank did not come: it died, hangs in a kernel, or runs another shape. The watchdog's line names
    the rank that waited, not the one that is missing.
How to fix: look for an error of another rank before this line; where there is none, see whether it goes with
    --disable-custom-all-reduce, NCCL_P2P_DISABLE=1 or --enforce-eager. A longer time-out only helps a slow start.
When to ignore: never; the group is ended.
Sources: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"[Ww]atchdog caught collective operation timeout.*?OpType=(?P<op>\w+).*?ran for (?P<ms>\d+) milliseconds",
        r"[Ww]atchdog caught collective operation timeout.*?ran for (?P<ms>\d+) milliseconds",
        r"[Cc]ollective operation timeout|Timed out waiting \d+ms for (?:send|recv) "
        r"operation|NCCL.*[Tt]imeout|Some NCCL operations have failed or timed out",
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "a collective{op} did not end{time}: another rank died or hangs; look for its error above this line",
            zh="集合通信{op}未能完成{time}：其他进程已退出或卡住；请查看此行之前的错误",
            op=f" ({told['op']})" if told.get("op") else "",
            time=msg(" in {s:.0f} s", zh="（{s:.0f} 秒）", s=int(told["ms"]) / 1000) if told.get("ms") else "",
        ),
        POSSIBLE if context.first(FIRST) and not context.facts.served else LIKELY,
    )


FIRST = r"collective operation timeout: WorkNCCL\(SeqNum=1,|last completed NCCL work: (?:0|-1)\b"
"""No collective ever ended: peer access is at fault rather than a rank that died."""

RULE = Rule(
    code="LOG142",
    name="collective-timed-out",
    severity=Severity.ERROR,
    summary=msg("A collective did not end in its time.", zh="集合通信操作超时。"),
    check=check,
    cause=Cause.NCCL_TIMEOUT,
    sources=("https://docs.pytorch.org/docs/stable/distributed.html",),
    bad=(
        Example(
            "[rank1]:[E1130 03:43:16 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=4096, Timeout(ms)=600000) "
            "ran for 600021 milliseconds before timing out.\n",
            at="line 1: [E1130",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
