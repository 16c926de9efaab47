"""The NVSwitch fabric is not set up: CUDA says that the system is not initialised.

What it does: recognises CUDA's error 802.
Why it matters: On HGX boards with NVSwitch no GPU works before nvidia-fabricmanager, in exactly the driver's version,
    has run.
How to fix: start nvidia-fabricmanager on the host, in the driver's version; in a virtual machine the host must pass
    the fabric through.
When to ignore: never; the server cannot work like this.
Sources: CUDA's cudaErrorSystemNotReady.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"[Ee]rror 802|system not yet initialized|cudaErrorSystemNotReady", kinds=(*TROUBLE, EntryKind.WARNING)
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "the NVSwitch fabric is not ready (error 802): start nvidia-fabricmanager in the driver's "
            "version on the host",
            zh="NVSwitch 未就绪（错误 802）：请在主机上启动与驱动同版本的 nvidia-fabricmanager",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG125",
    name="fabric-manager-not-running",
    severity=Severity.ERROR,
    summary=msg(
        "The NVSwitch fabric is not set up: CUDA says that the system is not initialised.",
        zh="NVSwitch 尚未初始化：CUDA 报告系统未就绪。",
    ),
    check=check,
    cause=Cause.GPU_NOT_VISIBLE,
    sources=("https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",),
    bad=(
        Example(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n",
            at="line 1: RuntimeError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
