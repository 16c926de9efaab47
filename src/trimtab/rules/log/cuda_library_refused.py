"""cuBLAS, cuDNN or another CUDA library refused a call.

What it does: recognises the libraries' status names.
Why it matters: Another version of the library than torch was built with is loaded (LD_LIBRARY_PATH), or the card's
    memory was full when its workspace was made.
How to fix: take foreign CUDA folders out of LD_LIBRARY_PATH; where the card is nearly full, lower
    --gpu-memory-utilization.
When to ignore: never; the server cannot work like this.
Sources: cuBLAS and cuDNN status codes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"(?P<status>CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|CUSOLVER_STATUS_\w+|CUSPARSE_STATUS_\w+|cuDNN error|"
        r"(?:HIPBLAS\w*|ROCBLAS|HIPSPARSE|MIOPEN)_STATUS_\w+|roc(?:blas|BLAS)\w* error|"
        r"cublas(?:lt|Lt)? failed|miopenStatus\w+|MIOpen Error)"
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "a CUDA library refused a call ({status}): another version of it is loaded, or the card is full",
            zh="CUDA 库调用失败（{status}）：加载了其他版本的库，或显存已满",
            status=hit["status"],
        ),
        LIKELY,
    )


RULE = Rule(
    code="LOG123",
    name="cuda-library-refused",
    severity=Severity.ERROR,
    summary=msg("cuBLAS, cuDNN or another CUDA library refused a call.", zh="cuBLAS、cuDNN 等 CUDA 库调用失败。"),
    check=check,
    cause=Cause.CUDA_LIBRARY_ERROR,
    sources=("https://docs.nvidia.com/cuda/cublas/",),
    bad=(
        Example(
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n",
            at="line 1: RuntimeError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
