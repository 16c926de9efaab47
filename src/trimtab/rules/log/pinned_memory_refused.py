"""The platform refuses pinned host memory or unified addressing; on WSL above all.

What it does: recognises vLLM's and FlashInfer's failures on it, and vLLM's note that WSL was detected.
Why it matters: The second model runner (default from 0.24 for many models) and some kernels need unified addressing,
    which WSL does not give.
How to fix: set VLLM_USE_V2_MODEL_RUNNER=0, or run on Linux itself. Memory is not short: a lower
    --gpu-memory-utilization changes nothing.
When to ignore: the note alone is harmless.
Sources: vllm/v1/worker/gpu/buffer_utils.py, vLLM 0.20 to 0.33; vllm/utils.py (is_pin_memory_available), vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    wsl = context.first(r"WSL is detected|[Mm]icrosoft-standard", kinds=EVERYWHERE)
    hit = context.first(
        r"UVA is not available|CPU tensor must be pinned",
        r"OS call failed or operation not supported on this OS",
        r"(?i)pin(?:ned)?[_ ]memory.*(?:not (?:supported|available)|failed)|cuda(?:HostAlloc|HostRegister|"
        r"HostGetDevicePointer).*fail|(?<!returned )cudaErrorNotSupported",
    )
    if hit is None:
        return
    yield context.finding(
        [hit, *([wsl] if wsl else [])],
        msg(
            "this platform{wsl} gives no pinned host memory or unified addressing; set "
            "VLLM_USE_V2_MODEL_RUNNER=0, or run on "
            "Linux itself",
            zh="该平台{wsl}不支持锁页内存或统一寻址；请设置 VLLM_USE_V2_MODEL_RUNNER=0，或直接在 Linux 上运行",
            wsl=" (WSL)" if wsl else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG033",
    name="pinned-memory-refused",
    severity=Severity.ERROR,
    summary=msg(
        "The platform refuses pinned host memory or unified addressing; on WSL above all.",
        zh="平台不支持锁页内存或统一寻址，常见于 WSL。",
    ),
    check=check,
    cause=Cause.PINNED_MEMORY_REFUSED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu/buffer_utils.py",),
    bad=(
        Example(
            "WARNING 11-30 03:43:10 [interface.py:1] Using 'pin_memory=False' as WSL is detected. This "
            "may slow down the performance.\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] RuntimeError: UVA is not available\n",
            at="line 2: RuntimeError: UVA is not available",
        ),
        Example("torch.AcceleratorError: CUDA error: OS call failed or operation not supported on this OS\n"),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:10 [interface.py:1] Using 'pin_memory=False' as WSL is detected. This "
            "may slow down the performance.\n"
        ),
    ),
)
