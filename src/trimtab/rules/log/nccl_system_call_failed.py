"""A system call of NCCL failed, and the log does not say on what.

What it does: recognises ncclSystemError and "unhandled system error"; where shared memory is named, another rule
    speaks first.
Why it matters: NCCL hides which call it was: shared memory, a socket, or locked memory for InfiniBand.
How to fix: start once with NCCL_DEBUG=INFO and read the WARN line above; in a container try --ipc=host, --ulimit
    memlock=-1 and NCCL_SOCKET_IFNAME.
When to ignore: never; the server cannot work like this.
Sources: NCCL's ncclSystemError; torch/csrc/distributed/c10d/NCCLUtils.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"ncclSystemError|unhandled system error|oneCCL: (?!.*zeMemOpenIpc).*EXCEPTION",
        r"ncclRemoteError|NCCL WARN (?!.*no socket interface found).*(?:socket|Connect|memlock|ibv_)",
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "a system call of NCCL failed: NCCL_DEBUG=INFO names it; in a container try --ipc=host first "
            "(shared memory)",
            zh="NCCL 的系统调用失败：用 NCCL_DEBUG=INFO 可以看到原因；在容器中先试 --ipc=host（共享内存）",
        ),
        LIKELY,
    )


RULE = Rule(
    code="LOG140",
    name="nccl-system-call-failed",
    severity=Severity.ERROR,
    summary=msg(
        "A system call of NCCL failed, and the log does not say on what.", zh="NCCL 的系统调用失败，日志未说明原因。"
    ),
    check=check,
    cause=Cause.NCCL_SYSTEM_ERROR,
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    bad=(
        Example(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, unhandled system "
            "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\n",
            at="line 1: torch.distributed",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [pynccl.py:1] vLLM is using nccl==2.27.5\n"),),
)
