"""A kernel could not be built at run time: compiler, nvcc, headers or CUDA_HOME.

What it does: recognises FlashInfer's, Triton's and PyTorch's failures to build, and commands that call a compiler at
    a path that cannot be.
Why it matters: Some kernels are compiled at the first use. Runtime images have no nvcc, slim images no gcc; a stray
    colon in CUDA_HOME ends in paths that do not exist.
How to fix: install gcc, g++, python3-dev, ninja and the CUDA toolkit of torch's version; set CUDA_HOME to its folder,
    without a colon. Or choose another attention backend that needs no build.
When to ignore: never, where it stopped the start.
Sources: torch/utils/cpp_extension.py; flashinfer/jit; triton/runtime/build.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

COMPILER = r"PassManager::run failed|(?:triton|mlir|llvm)\S*\.(?:cpp|h):\d+: .{0,300}Assertion .{0,300} failed"
"""Triton's compiler fails its own check: it has no code for this kernel on this card."""


def check(context: LogContext) -> Iterator[Finding]:
    if broken := context.first(COMPILER):
        yield context.finding(broken, BROKEN, LIKELY)
    hit = context.first(
        r"Could not find nvcc|CUDA_HOME environment variable is not set|nvcc(?:'|:)? ?(?:not found|No such "
        r"file)|No such file or directory: '(?:\S*/)?(?:nvcc|gcc|g\+\+|cc|c\+\+|ninja|ptxas\S*)'",
        r"nvcc fatal|Failed to find C compiler",
        r"[Nn]inja (?:is required|build (?:failed|stopped))|ninja: build stopped|Error building "
        r"extension|Python\.h: No such file|fatal error: \S+\.h: No such",
        r"(?P<path>:\S*/nvcc)\b|(?:gcc|g\+\+|cc1plus|nvcc).*(?:command not found|returned non-zero|failed "
        r"with exit)|CalledProcessError.*(?:gcc|nvcc|ninja)",
        r"cannot find -lcuda|CalledProcessError: Command .*(?:-shared|-lcuda|\.cu?')",
        r"Assertion error \(?\S*jit/\w+\.\w+:\d+|(?:NVCC|NVRTC|nvrtc)\w* (?:compilation|compile|error)|NVRTC_ERROR_\w+|"
        r"hip runtime failed to load|provide architecture for which code is to be generated|HIPRTC_ERROR_\w+",
        r"aiter.{0,80}(?:build|compile)\w* (?:failed|error)|hipcc.*(?:failed|not found)|"
        r"[Ff]ailed to (?:JIT|jit)[- ]?compile",
    )
    if hit is None:
        return
    path = hit.match.groupdict().get("path")
    yield context.finding(
        hit,
        msg(
            "a kernel could not be built at run time{path}: check gcc, nvcc, ninja, Python's headers and CUDA_HOME",
            zh="运行时编译内核失败{path}：请检查 gcc、nvcc、ninja、Python 头文件和 CUDA_HOME",
            path=msg(" (CUDA_HOME begins with a colon: {path})", zh="（CUDA_HOME 以冒号开头：{path}）", path=path)
            if path
            else "",
        ),
        SURE,
    )


BROKEN = msg(
    "Triton's compiler fails on a kernel for this card: take another attention backend, --enforce-eager, or the Triton "
    "that this vLLM was released with",
    zh="Triton 编译器无法为该显卡编译内核：请更换注意力后端、使用 --enforce-eager，或安装该 vLLM 发布时对应的 Triton",
)


RULE = Rule(
    code="LOG117",
    name="kernel-build-at-run-time-failed",
    severity=Severity.ERROR,
    summary=msg(
        "A kernel could not be built at run time: compiler, nvcc, headers or CUDA_HOME.",
        zh="运行时无法编译内核：缺少编译器、nvcc、头文件或 CUDA_HOME 有误。",
    ),
    check=check,
    cause=Cause.JIT_BUILD_FAILED,
    sources=(
        "https://docs.flashinfer.ai/installation.html",
        "https://github.com/triton-lang/triton/blob/main/python/triton/runtime/build.py",
    ),
    bad=(
        Example(
            "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n",
            at="line 1: RuntimeError: Could not find nvcc",
        ),
        Example("/bin/sh: 1: :/opt/cuda/bin/nvcc: not found\nninja: build stopped: subcommand failed.\n"),
        Example(
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set "
            "triton.knobs.build.impl.\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
