"""The NVIDIA driver is older than the CUDA of torch or of an extension.

What it does: recognises CUDA's, PyTorch's and the container runtime's words on it.
Why it matters: PTX of a newer toolkit is not understood by an older driver: the start works until the first kernel
    that was built so.
How to fix: update the driver, or install a build for an older CUDA. "unsupported toolchain" is not about gcc or nvcc
    of the host.
When to ignore: never; the server cannot work like this.
Sources: CUDA's cudaErrorUnsupportedPtxVersion and cudaErrorInsufficientDriver; nvidia-container-cli.
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
        r"PTX was compiled with an unsupported toolchain",
        r"NVIDIA driver on your system is too old \(found version (?P<found>\d+)\)",
        r"CUDA driver version is insufficient|unsatisfied condition: cuda>=(?P<needs>[\d.]+)|forward "
        r"compatibility was attempted on non supported",
        r"installed CUDA driver < R\d+",
        r"Error (?:500: named symbol not found|36: API call is not supported)",
        r"unsupported display driver / cuda driver combination|cudaErrorInsufficientDriver",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "the NVIDIA driver{found} is too old for the CUDA that this build was made with{needs}: update "
            "the driver, or "
            "install a build for an older CUDA",
            zh="NVIDIA 驱动{found}对该版本所用的 CUDA{needs}来说太旧：请更新驱动，或安装较旧 CUDA 的版本",
            found=f" ({told['found']})" if told.get("found") else "",
            needs=f" ({told['needs']})" if told.get("needs") else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG115",
    name="driver-older-than-cuda",
    severity=Severity.ERROR,
    summary=msg(
        "The NVIDIA driver is older than the CUDA of torch or of an extension.",
        zh="NVIDIA 驱动比 torch 或扩展所用的 CUDA 旧。",
    ),
    check=check,
    cause=Cause.DRIVER_TOO_OLD,
    sources=("https://docs.nvidia.com/deploy/cuda-compatibility/",),
    bad=(
        Example(
            "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n",
            at="line 1: torch.AcceleratorError",
        ),
        Example(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please "
            "update your GPU driver\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
