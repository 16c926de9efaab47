"""A shared library is not found, or the C library is too old for a binary.

What it does: reads the library's name from the loader's message.
Why it matters: The build expects a CUDA that is not there (another major version), or a newer system.
How to fix: install the package that brings the library, or a build of vLLM for the CUDA that is there; do not link
    one version under another's name.
When to ignore: a warning about an optional library that nothing uses.
Sources: the dynamic loader's messages (ld.so), GNU C library.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"(?P<library>lib[\w.+-]+\.so[\w.]*)(?: \(deleted\))?: cannot open shared object file",
        r"version `(?P<library>GLIBC(?:XX)?_[\d.]+)' not found",
        r"(?P<library>libcudart) is not loaded",
        r"(?P<library>lib[\w.+-]+) is not found in LD_PRELOAD\. Please",
        r"(?:Unable|[Ff]ailed) to (?:load|open)(?: any of)? "
        r".*?(?P<library>lib(?:cudnn|cublas|cudart|nvrtc|cuda|numa)[\w.]*)",
    ) or context.first(TRIED, kinds=(EntryKind.WARNING,))
    if hit is None or hit["library"].startswith(("libnvidia-ml", "libnccl", "libcuda.so")):
        return
    yield context.finding(
        hit,
        msg(
            "{library} is not found: install what brings it, or a build of vLLM made for this system's CUDA",
            zh="找不到 {library}：请安装提供它的软件包，或安装与本机 CUDA 匹配的 vLLM",
            library=hit["library"],
        ),
        SURE,
    )


TRIED = r"[Ff]ailed to import from vllm\._\w+ .{0,200}version `(?P<library>GLIBC(?:XX)?_[\d.]+)' not found"
"""vLLM goes on without its kernels, and says so as a warning."""


RULE = Rule(
    code="LOG116",
    name="shared-library-missing",
    severity=Severity.ERROR,
    summary=msg(
        "A shared library is not found, or the C library is too old for a binary.",
        zh="找不到共享库，或系统 C 库版本过旧。",
    ),
    check=check,
    cause=Cause.SHARED_LIBRARY_MISSING,
    sources=("https://man7.org/linux/man-pages/man8/ld.so.8.html",),
    bad=(
        Example(
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
            at="line 1: ImportError: libcudart",
        ),
        Example(
            "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by _C.abi3.so)\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
