"""NCCL itself fails: a defect of its version, two versions mixed, or its library not found.

What it does: recognises NCCL's internal and CUDA errors, a library that does not load, and a mismatch of versions.
Why it matters: Another NCCL than torch's own is loaded, or ranks have different ones; some releases have defects with
    certain cards.
How to fix: take LD_LIBRARY_PATH and VLLM_NCCL_SO_PATH out of the environment, install the nvidia-nccl package that
    torch asks for, the same on every node; with --disable-custom-all-reduce see whether vLLM's own kernel is the
    fault.
When to ignore: never; the server cannot work like this.
Sources: NCCL's ncclUnhandledCudaError and ncclInternalError; vllm/distributed/device_communicators/pynccl.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"ncclUnhandledCudaError|ncclInternalError|unhandled cuda error",
        r"[Ff]ailed to load (?:the )?NCCL library|NCCL version \S+ or higher is required|libnccl\S*: cannot "
        r"open|NCCL version mismatch|[Mm]ismatched? NCCL "
        r"version|undefined symbol: nccl\w+",
    )
    if hit is None:
        return
    version = context.first(r"NCCL version (?P<v>[\d.]+)", kinds=EVERYWHERE)
    yield context.finding(
        [hit, *([version] if version and version.entry != hit.entry else [])],
        msg(
            "NCCL{version} failed in itself: use the NCCL that torch asks for on every node, and try "
            "--disable-custom-all-reduce",
            zh="NCCL{version} 自身出错：请在每个节点使用 torch 要求的 NCCL 版本，并试试 --disable-custom-all-reduce",
            version=f" {version['v']}" if version else "",
        ),
        LIKELY,
    )


RULE = Rule(
    code="LOG141",
    name="nccl-itself-failed",
    severity=Severity.ERROR,
    summary=msg(
        "NCCL itself fails: a defect of its version, two versions mixed, or its library not found.",
        zh="NCCL 自身失败：版本缺陷、版本混用或找不到库。",
    ),
    check=check,
    cause=Cause.NCCL_VERSION,
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/distributed/device_communicators/pynccl.py",
    ),
    bad=(
        Example(
            "ncclUnhandledCudaError: Call to CUDA function failed.\nNCCL version 2.19.3\n",
            at="line 1: ncclUnhandledCudaError",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [pynccl.py:1] vLLM is using nccl==2.27.5\n"),),
)
