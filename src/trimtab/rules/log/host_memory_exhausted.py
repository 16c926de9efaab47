"""The host, or the container's limit, ran out of memory.

What it does: recognises what Python, PyTorch, the kernel, Docker and Kubernetes say of it.
Why it matters: Weights pass through host memory while they load, with several ranks several times; pinned buffers,
    swap space and the CPU engine's KV cache come on top.
How to fix: give the host or the container more memory, start fewer ranks, lower --cpu-offload-gb, --swap-space or
    VLLM_CPU_KVCACHE_SPACE. A lower --gpu-memory-utilization changes nothing: it is about the card.
When to ignore: never; the process was ended.
Sources: torch c10/core/CPUAllocator, Linux mm/oom_kill.c, Kubernetes' OOMKilled.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import HUNCH, SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"DefaultCPUAllocator: (?:can't|not enough|not) .*?(?:tried to allocate (?P<bytes>\d+) bytes|$)",
        r"OOM[Kk]illed|oom-kill|[Oo]ut of memory: Kill|Memory cgroup out of memory|oom_reaper",
        r"^MemoryError\b|Cannot allocate memory|std::bad_alloc|\[Errno 12\]",
        r"[Rr]ay.*(?:OutOfMemoryError|memory pressure)|killed due to (?:the )?node running low on memory|"
        r"how to address the out of memory issue",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None and (killed := context.first(KILLED)) is not None and not context.errors:
        yield context.finding(killed, MAYBE, HUNCH)
    if hit is None or any("safetensors" in frame for frame in hit.entry.frames):
        return  # an LFS pointer makes the reader of weights ask for exabytes: another rule's
    size = hit.match.groupdict().get("bytes")
    asked = f"{int(size) / (1 << 30):.1f} GiB" if size else None
    yield context.finding(
        hit,
        msg(
            "host memory ran out{asked}: give the host or container more, or start fewer ranks; flags of the "
            "card's memory "
            "change nothing",
            zh="主机内存耗尽{asked}：请增加主机或容器内存，或减少进程数；显存相关的参数没有作用",
            asked=msg(" ({n} were asked for)", zh="（申请 {n}）", n=asked) if asked else "",
        ),
        SURE,
    )


KILLED = r"^Killed\b|(?:s/it|it/s)\] *Killed$|: line \d+: +\d+ Killed\b"
MAYBE = msg(
    "the process was killed and nothing says why: the host's or the container's memory is the likeliest reason; dmesg "
    "or OOMKilled in kubectl describe pod tells",
    zh="进程被杀死，日志没有说明原因：最可能的是主机或容器内存不足；请查看 dmesg 或 "
    "kubectl describe pod 中的 OOMKilled",
)


RULE = Rule(
    code="LOG030",
    name="host-memory-exhausted",
    severity=Severity.ERROR,
    summary=msg("The host, or the container's limit, ran out of memory.", zh="主机内存或容器内存限制已耗尽。"),
    check=check,
    cause=Cause.OOM_HOST_RAM,
    sources=(
        "https://docs.kernel.org/admin-guide/cgroup-v2.html",
        "https://github.com/pytorch/pytorch/blob/main/c10/core/impl/alloc_cpu.cpp",
    ),
    bad=(
        Example(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 21474836480 bytes. Error code 12 (Cannot allocate memory)\n",
            at="line 1: RuntimeError: [enforce fail",
        ),
        Example("[ 1234.5] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python3,pid=4121,uid=0\n"),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
