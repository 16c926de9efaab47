"""The start stands still in NCCL's first call, or peer access is refused.

What it does: speaks where the last thing that a start told is NCCL's version, and on refusals of peer access and
    InfiniBand.
Why it matters: Cards that cannot reach each other's memory (virtual machines with IOMMU or ACS, some boards), or an
    InfiniBand that is there and does not work, make NCCL wait for ever at full load.
How to fix: start with NCCL_P2P_DISABLE=1, on several nodes NCCL_IB_DISABLE=1, to see which it is; then turn ACS off
    in the firmware or keep the variable.
When to ignore: when the log was copied within the first minute.
Sources: vllm/distributed/device_communicators/pynccl.py; NCCL's troubleshooting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.collective_timed_out import FIRST
from trimtab.rules.log.context import HUNCH, LIKELY, POSSIBLE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PROGRESS = re.compile(
    r"[Ll]oad(?:ing)? (?:model|weights)|model loading took|checkpoint shards|KV cache|rank \d+ in world size"
)
REFUSED = msg(
    "the cards cannot reach each other's memory: NCCL_P2P_DISABLE=1 (several nodes: NCCL_IB_DISABLE=1) shows which way",
    zh="显卡之间无法直接访问：用 NCCL_P2P_DISABLE=1（多机用 NCCL_IB_DISABLE=1）确定原因",
)
STILL = msg(
    "the log ends at NCCL's first call: where it stays there, peer access or InfiniBand does not work on "
    "this host; try "
    "NCCL_P2P_DISABLE=1",
    zh="日志停在 NCCL 的首次调用：若一直停住，说明本机的 P2P 或 InfiniBand 不可用；请试 NCCL_P2P_DISABLE=1",
)


def check(context: LogContext) -> Iterator[Finding]:
    asked = context.first(r"nvmlDeviceGetP2PStatus\(.*failed")
    if asked is not None:
        yield context.finding(asked, REFUSED, SURE)
        return
    hit = context.first(
        r"peer access is not supported|cudaErrorPeerAccess\w+|P2P.*not "
        r"(?:supported|available).*(?:between|fail)|NET/IB.*(?:failed|error)|ibv_\w+ failed",
        r"NCCL WARN P2P is disabled between NVLINK connected|NCCL WARN (?:cuda|hip)Ipc\w+ failed|"
        r"nvshmemi_common_init failed|NVSHMEM API called before|(?:nvshmem|NVSHMEM) init\w* failed|"
        r"zeMemOpenIpcHandle|(?:p2p|nvls|net_ib)\.cc:\d+ NCCL WARN",
        FIRST,
    )
    if hit is not None and not context.facts.served:
        yield context.finding(hit, REFUSED, LIKELY)
        return
    call = context.first(r"ncclUnhandledCudaError|unhandled cuda error")
    if call is not None and not context.facts.served:
        yield context.finding(call, REFUSED, HUNCH)
        return
    last = context.last(r"vLLM is using nccl==|Init(?:ializing)? NCCL|ncclCommInitRank")
    if last is None or context.failed or context.facts.served or context.facts.stopped:
        return
    if any(e.line > last.entry.line for e in context.last_start if PROGRESS.search(e.text)):
        return
    yield context.finding(last, STILL, POSSIBLE, severity=Severity.WARNING)


RULE = Rule(
    code="LOG143",
    name="start-stands-still-in-nccl",
    severity=Severity.ERROR,
    summary=msg(
        "The start stands still in NCCL's first call, or peer access is refused.",
        zh="启动卡在 NCCL 的首次调用，或无法进行 GPU 间直接访问。",
    ),
    check=check,
    cause=Cause.P2P_UNUSABLE,
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        "https://docs.vllm.ai/en/latest/usage/troubleshooting/",
    ),
    bad=(
        Example(
            "RuntimeError: CUDA error: peer access is not supported between these two devices\n",
            at="line 1: RuntimeError",
        ),
        Example("(Worker_TP0 pid=8) INFO 11-30 03:43:16 [pynccl.py:111] vLLM is using nccl==2.27.5\n"),
    ),
    good=(
        Example(
            "(Worker_TP0 pid=8) INFO 11-30 03:43:16 [pynccl.py:111] vLLM is using nccl==2.27.5\n"
            "(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"
        ),
    ),
)
