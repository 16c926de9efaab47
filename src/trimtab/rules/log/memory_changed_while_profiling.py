"""Memory of the card was freed by somebody else while vLLM measured its own.

What it does: recognises vLLM's guard, whose free memory after the profile run is not below that before.
Why it matters: vLLM stops, although more is free than it thought: its measure would be wrong. It comes with another
    server that starts or ends at the same time, with memory shared with the host (GB10, Jetson), and in some versions
    on XPU.
How to fix: start servers one after another on a card; on shared memory, drop the page cache before the start. Give
    --kv-cache-memory-bytes, which needs no measuring.
When to ignore: never; the server did not start. A second try often succeeds.
Sources: vllm/v1/worker/gpu_worker.py (determine_available_memory), vLLM 0.26 to 0.33; vllm/worker/worker.py, vLLM
    0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Error in memory profiling\. +Initial free memory (?P<before>[\d.]+)(?P<unit> GiB)?, current free "
        r"memory (?P<after>[\d.]+)",
        r"Error in memory profiling",
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "free memory went from {before} to {after}{unit} while vLLM measured: another process freed "
            "some; start servers "
            "one after another, or give --kv-cache-memory-bytes",
            zh="vLLM 测量期间空闲显存从 {before} 变为 {after}{unit}：其他进程释放了显存；请依次启动服务器，或"
            "指定 --kv-cache-memory-bytes",
            before=told.get("before") or "?",
            after=told.get("after") or "?",
            unit=told.get("unit") or "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG011",
    name="memory-changed-while-profiling",
    severity=Severity.ERROR,
    summary=msg(
        "Memory of the card was freed by somebody else while vLLM measured its own.",
        zh="vLLM 测量自身显存时，其他进程释放了显存。",
    ),
    check=check,
    cause=Cause.GPU_MEMORY_CHANGED_WHILE_PROFILING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",),
    bad=(
        Example(
            "AssertionError: Error in memory profiling. Initial free memory 66.20 GiB, current free "
            "memory 71.83 GiB. This happens when other processes sharing the same container release GPU "
            "memory while vLLM is profiling during initialization.\n",
            at="line 1: AssertionError: Error in memory profiling",
        ),
        Example(
            "AssertionError: Error in memory profiling. Initial free memory 24849547264, current free "
            "memory 25016926208. This happens when the GPU memory was not properly cleaned up before "
            "initializing the vLLM instance.\n"
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
        ),
    ),
)
