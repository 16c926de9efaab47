"""A kernel left its memory or failed its own check.

What it does: recognises CUDA's asynchronous faults.
Why it matters: CUDA tells it at the next call that waits, so the traceback points at the wrong place; the engine is
    dead.
How to fix: start once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; try another attention backend, --enforce-eager,
    without speculative decoding or --kv-cache-dtype, and a newer vLLM. It is no lack of memory.
When to ignore: never; after it nothing of this process is right.
Sources: CUDA's cudaErrorIllegalAddress, cudaErrorAssert, cudaErrorLaunchFailure.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

MOST_SHOWN = 120


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"illegal memory access|device-side assert triggered|misaligned address|unspecified launch failure|an illegal "
        r"instruction was encountered|CUDA_ERROR_ILLEGAL_ADDRESS|warp illegal",
        r"(?:block|thread): \[\d+,\d+,\d+\],? .{0,80}Assertion `.{1,200}` failed",
        r"\.cuh?:\d+: .{0,200}\bAssertion `.{1,200}` failed|Device-side assertion `.{1,200}' failed",
        r"Memory access fault by GPU|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY_\w+|ILLEGAL\w*|INVALID_PACKET\w*)|"
        r"Error in function '\w+'.{0,300}Got CUDA error|Hang detected|GPU core ?dump|hipError(?:IllegalAddress|"
        r"LaunchFailure)",
    )
    grade = LIKELY
    if hit is None:
        hit, grade = context.first(CALLS), POSSIBLE
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "a kernel failed on the card ({what}); the traceback points elsewhere: CUDA_LAUNCH_BLOCKING=1 "
            "shows the kernel",
            zh="显卡上的内核出错（{what}）；调用栈指向的位置不准确：用 CUDA_LAUNCH_BLOCKING=1 可以看到出错的内核",
            what=hit.match[0][-MOST_SHOWN:],
        ),
        grade,
    )


CALLS = (
    r"(?:CUDA|HIP) error: (?:invalid (?:configuration )?argument|unknown error|invalid resource handle|"
    r"too many resources "
    r"requested|operation (?:not permitted|failed due to).{0,60}captur\w+)"
)
"""The card refused a launch: a kernel's defect as a rule, and as little told by the line."""


RULE = Rule(
    code="LOG122",
    name="illegal-memory-access",
    severity=Severity.ERROR,
    summary=msg("A kernel left its memory or failed its own check.", zh="内核越界访问内存或自检失败。"),
    check=check,
    cause=Cause.ILLEGAL_MEMORY_ACCESS,
    sources=("https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",),
    bad=(
        Example(
            "(APIServer pid=1) INFO:     Application startup complete.\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] torch.AcceleratorError: CUDA error: an "
            "illegal memory access was encountered\n",
            at="line 2: torch.AcceleratorError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
