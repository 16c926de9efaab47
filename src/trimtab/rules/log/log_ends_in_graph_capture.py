"""The log ends while CUDA graphs are captured, without an error.

What it does: speaks where a start made its KV cache, began to capture graphs, shows no error and never served.
Why it matters: Graphs are allocated beside vLLM's share of the card; where nothing is left, the process may end
    without a word of its own.
How to fix: lower --gpu-memory-utilization by 0.03 to 0.05, or --max-num-seqs. Do not raise the share. Wait first:
    many sizes take a minute.
When to ignore: when the log was copied before the start was over.
Sources: vllm/worker/model_runner.py (capture_model), vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, LogContext
from trimtab.rules.log.oom import OOM, Stage, stage_before
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    if context.failed or context.facts.served or context.facts.stopped or context.first(OOM):
        return
    if stage_before(context, context.log.lines + 1) is not Stage.CAPTURE:
        return
    hit = context.last(r"(?i)captur\w+ .*graphs?|CUDA graphs can take")
    if hit is None or context.last(r"Graph capturing finished|init engine"):
        return
    yield context.finding(
        hit,
        msg(
            "the log ends while CUDA graphs are captured; a process that ends here has no memory left beside "
            "the KV cache: try "
            "a --gpu-memory-utilization lower by 0.03 to 0.05",
            zh="日志在捕获 CUDA graph 时中断；在此退出说明 KV 缓存之外已无显存：请把 "
            "--gpu-memory-utilization 降低 0.03 到 0.05",
        ),
        POSSIBLE,
    )


RULE = Rule(
    code="LOG021",
    name="log-ends-in-graph-capture",
    severity=Severity.WARNING,
    summary=msg(
        "The log ends while CUDA graphs are captured, without an error.",
        zh="日志在捕获 CUDA graph 时中断，没有错误信息。",
    ),
    check=check,
    cause=Cause.OOM_GRAPH_CAPTURE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/model_runner.py",),
    bad=(
        Example(
            "INFO 08-01 07:48:15 gpu_executor.py:102] # GPU blocks: 20480, # CPU blocks: 5120\n"
            "INFO 08-01 07:48:18 model_runner.py:1225] CUDA graphs can take additional 1~3 GiB memory "
            "per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or "
            "enforcing eager mode.\n",
            at="line 2: CUDA graphs can take",
        ),
    ),
    good=(
        Example("(EngineCore pid=7) INFO 11-30 03:43:16 [x.py:1] Graph capturing finished in 4 secs, took 0.89 GiB\n"),
    ),
)
