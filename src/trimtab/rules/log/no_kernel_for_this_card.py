"""The installed build holds no kernel for this card.

What it does: recognises CUDA's "no kernel image" and what PyTorch and ptxas say of a card that they were not built
    for.
Why it matters: A wheel holds machine code for some generations. A card newer than the wheel (Blackwell with an old
    CUDA) fails as one that is too old.
How to fix: install a build of vLLM and torch for a CUDA that knows the card (12.8 or newer for Blackwell);
    TORCH_CUDA_ARCH_LIST when building.
When to ignore: never; the server cannot work like this.
Sources: CUDA's cudaErrorNoKernelImageForDevice; torch/cuda/__init__.py (_check_cubins).
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
        r"no kernel image is available for execution",
        r"cuda capability (?P<sm>sm_\d+) is not compatible with the current PyTorch",
        r"sm_\d+\w?'? is not defined for option|"
        r"[Cc]ould not run '_\w*C\w*::\w+' with arguments from the 'CUDA'",
        r"No Unquantized MoE backend supports|No supported CUDA architectures found|"
        r"device kernel image is invalid|HSA_STATUS_ERROR_INVALID_\w*(?:CODE_OBJECT|ISA)",
        r"LLVM ERROR: Cannot select|Unsupported gpu architecture|no kernel image|invalid device function",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "the installed build has no code for this card: install vLLM and torch built for a CUDA that knows it",
            zh="安装的版本没有该显卡的代码：请安装支持该显卡的 CUDA 版本所构建的 vLLM 和 torch",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG113",
    name="no-kernel-for-this-card",
    severity=Severity.ERROR,
    summary=msg("The installed build holds no kernel for this card.", zh="安装的版本没有该显卡的内核。"),
    check=check,
    cause=Cause.KERNEL_IMAGE_MISSING,
    sources=("https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",),
    bad=(
        Example(
            "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device\n",
            at="line 1: torch.AcceleratorError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
