"""/dev/shm is too small for NCCL or the queues between vLLM's processes.

What it does: recognises a bus error, NCCL's failure to make a segment, and a write that found no space in shared
    memory.
Why it matters: A container has 64 MB of shared memory by default. NCCL often says only "unhandled system error".
How to fix: start the container with --ipc=host or --shm-size=16g (Kubernetes: an emptyDir of medium Memory at
    /dev/shm). Do not write `-e --ipc=host`: that sets an environment variable and nothing else.
When to ignore: a bus error also comes from a damaged or shrinking file that is mapped; look at the disk when /dev/shm
    is large.
Sources: NCCL src/misc/shmutils.cc; vllm/distributed/device_communicators/shm_broadcast.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import HUNCH, LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

COUNTED = r"Insufficient space in /dev/shm: (?P<need>\d+) MiB required, (?P<free>\d+) MiB free"
"""vLLM 0.27 and later, before it makes its queues."""


def check(context: LogContext) -> Iterator[Finding]:
    if refused := context.first(REFUSED):
        yield context.finding(refused, UNWRITABLE, SURE)
        return
    counted = context.first(COUNTED)
    hit = counted or context.first(
        r"shared memory segment|/dev/shm|ncclShm\w+|shm_open.*(?:fail|No space)|unable to open shared memory",
        r"[Bb]us error|SIGBUS",
        r"No space left on device.*(?:shm|shared_memory)|unable to (?:write to|mmap|resize|allocate) .*</torch_\d+",
    )
    if hit is None:
        hit = (
            context.framed(r"multiprocessing/shared_memory\.py") if context.first(r"No space left on device") else None
        )
    if hit is None and (call := context.first(NCCL)) is not None and not context.facts.served:
        yield context.finding(call, MAYBE, HUNCH)
    if hit is None:
        return
    bus = "us error" in hit.match[0]
    yield context.finding(
        hit,
        msg(
            "shared memory (/dev/shm) is too small: {need} MiB are needed and {free} MiB free; start the container "
            "with --ipc=host or --shm-size=16g",
            zh="共享内存（/dev/shm）太小：需要 {need} MiB，空闲 {free} MiB；请用 --ipc=host 或 --shm-size=16g 启动容器",
            need=counted["need"],
            free=counted["free"],
        )
        if counted
        else msg(
            "shared memory (/dev/shm) ran out: start the container with --ipc=host or --shm-size=16g",
            zh="共享内存（/dev/shm）不足：请用 --ipc=host 或 --shm-size=16g 启动容器",
        ),
        LIKELY if bus else SURE,
    )


REFUSED = (
    r"\[Errno \d+\] (?:Read-only file system|Permission denied|No such file or directory): '/(?:psm_|mp-|sem\.)\w+"
)
"""Python's names of shared memory: files of /dev/shm, and told without it."""
UNWRITABLE = msg(
    "shared memory cannot be made: /dev/shm is missing, read-only or another user's; mount it writable (a tmpfs), in a "
    "container with --ipc=host or --shm-size=16g",
    zh="无法创建共享内存：/dev/shm 不存在、只读或属于其他用户；请以可写方式挂载（tmpfs），容器中使用 --ipc=host 或 "
    "--shm-size=16g",
)
NCCL = r"ncclSystemError|unhandled system error"
MAYBE = msg(
    "a system call of NCCL failed at the start and nothing says which: in a container the shared memory (/dev/shm) is "
    "often too small; --ipc=host or --shm-size=16g rules it out",
    zh="NCCL 的系统调用在启动时失败，日志没有说明原因：容器中常见的是共享内存（/dev/shm）太小；可用 --ipc=host 或 "
    "--shm-size=16g 排除",
)


RULE = Rule(
    code="LOG034",
    name="shared-memory-exhausted",
    severity=Severity.ERROR,
    summary=msg(
        "/dev/shm is too small for NCCL or the queues between vLLM's processes.",
        zh="/dev/shm 太小，NCCL 或 vLLM 进程间队列无法使用。",
    ),
    check=check,
    cause=Cause.SHM_TOO_SMALL,
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/distributed/device_communicators/shm_broadcast.py",
    ),
    bad=(
        Example(
            "host:41:77 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab1 (size "
            "9637888)\n"
            "torch.distributed.DistBackendError: NCCL error in: "
            "NCCLUtils.hpp:317, unhandled system error\n",
            at="line 1: host:41:77",
        ),
        Example("Fatal Python error: Bus error\n"),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
